"""The current span of every handler: one object that stands for the span of the running task.

It is made current once, where a runner takes the variables that all its bodies start with. What it
is asked or told goes to the span of the task that runs right there. If that has none, it is not
sampled, or its span is another process's: then there is its context, so that spans of the handler
are part of the task's trace, or are not sampled either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, Span, SpanContext, TraceFlags

from holdfast.core.attempt import Claim
from holdfast.core.task import TaskId
from holdfast.core.trace import traceparent_of
from holdfast.definitions.context import current_claim

Open = Mapping[tuple[TaskId, int], Span]


class RunningSpan(Span):
    """The span of whichever task is running right here."""

    def __init__(self, spans: Open, is_sampled: Callable[[Claim], bool]) -> None:
        """`spans` are those of this process that have not ended."""
        self._spans = spans
        self._is_sampled = is_sampled

    def _span(self) -> Span:
        claim = current_claim()
        if claim is None:
            return INVALID_SPAN
        span = self._spans.get((claim.task_id, claim.attempt))
        if span is not None:
            return span
        said = traceparent_of(claim.task_id, claim.trace, claim.attempt)
        context = context_of(said)
        if not self._is_sampled(claim):
            flags = TraceFlags(context.trace_flags & ~TraceFlags.SAMPLED)
            context = SpanContext(
                context.trace_id, context.span_id, is_remote=True, trace_flags=flags
            )
        return NonRecordingSpan(context)

    def get_span_context(self) -> SpanContext:
        return self._span().get_span_context()

    def is_recording(self) -> bool:
        return self._span().is_recording()

    def set_attribute(self, key: str, value: Any) -> None:
        self._span().set_attribute(key, value)

    def set_attributes(self, attributes: Any) -> None:
        self._span().set_attributes(attributes)

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        self._span().add_event(name, attributes, timestamp)

    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        self._span().add_link(context, attributes)

    def update_name(self, name: str) -> None:
        self._span().update_name(name)

    def set_status(self, status: Any, description: str | None = None) -> None:
        self._span().set_status(status, description)

    def record_exception(
        self,
        exception: BaseException,
        attributes: Any = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        self._span().record_exception(exception, attributes, timestamp, escaped)

    def end(self, end_time: int | None = None) -> None:
        """Nothing: a run ends when its handler has."""


def context_of(traceparent: str) -> SpanContext:
    """The span that a `traceparent` names; somebody else made it."""
    _, trace_id, span_id, flags = traceparent.split("-")
    return SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
    )


def traceparent_from(context: SpanContext) -> str:
    """How that span is told to others."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"
