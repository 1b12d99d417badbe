"""Makes the spans of one process. Whatever goes wrong here, no task hears of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import Any, Final, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace as otel
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import Outcome
from holdfast.core.task import Added, Cause, NewTask, TaskId
from holdfast.core.trace import is_sampled, span_id_of, trace_id_of, traceparent_of
from holdfast.definitions import tracing
from holdfast.definitions.middleware import Calls, NextSubmit
from holdfast.logs import EventLog, trace_of
from holdfast.tracing import attributes
from holdfast.tracing.current import RunningSpan, context_of, traceparent_from
from holdfast.tracing.ids import (
    EVERY,
    Given,
    GivenIds,
    TaskSampler,
    bound_of,
    is_below,
    submitted_at,
)

log = EventLog("holdfast.tracing")

T = TypeVar("T")

FLUSH: Final = 2.0
"""Seconds that a worker or a program which ends gives its last spans to get away."""
MOST_ELSEWHERE: Final = 10_000
"""Attempts in the hands of HTTP workers whose start is remembered."""

_open_submits: ContextVar[list[Span] | None] = ContextVar("holdfast_open_submits", default=None)


class Spans:
    """The spans of the tasks that this process submits and runs. From any thread."""

    def __init__(self, provider: otel.TracerProvider) -> None:
        self._provider = provider
        self._given = Given()
        self._tracer, self._bound = _our_tracer(provider, self._given)
        self._open: dict[tuple[TaskId, int], Span] = {}
        self._elsewhere: dict[tuple[TaskId, int], int] = {}
        self._flushing: threading.Thread | None = None
        self._has_failed = False
        self.current = RunningSpan(self._open, self._is_sampled)
        tracing.spans_of_submits = self.submitted

    def _is_sampled(self, claim: Claim) -> bool:
        trace = claim.trace
        return is_below(claim.task_id, self._bound) if trace is None else is_sampled(trace)

    # Submits.

    def submitted(
        self, tasks: Sequence[NewTask], trace: str | None, operation: str
    ) -> Sequence[NewTask]:
        """These tasks, with the span in which they are submitted as the parent of what becomes of
        them. They belong to the trace that they name, else to `trace`; else each begins its own.
        """
        try:
            return self._submitted(tasks, trace, operation)
        except Exception as error:  # noqa: BLE001 - no submit fails because of its span
            self._failed(error)
            return [task if task.trace else task._replace(trace=trace) for task in tasks]

    def _submitted(
        self, tasks: Sequence[NewTask], trace: str | None, operation: str
    ) -> Sequence[NewTask]:
        together: dict[str, list[NewTask]] = {}
        for task in tasks:
            parent = task.trace or trace
            if parent is not None:
                together.setdefault(parent, []).append(task)
        traces = {parent: self._child(parent, some, operation) for parent, some in together.items()}
        made: list[NewTask] = []
        for task in tasks:
            parent = task.trace or trace
            told = self._root(task, operation) if parent is None else traces[parent]
            made.append(task._replace(trace=told))
        return made

    def _child(self, parent: str, tasks: list[NewTask], operation: str) -> str:
        if not is_sampled(parent):
            return parent
        name, said = attributes.of_submit(operation, tasks)
        within = otel.set_span_in_context(otel.NonRecordingSpan(context_of(parent)))
        return self._begun(self._tracer.start_span(name, within, SpanKind.PRODUCER, said))

    def _root(self, task: NewTask, operation: str) -> str:
        """The trace that begins with this task. Not sampled, it is told too, or its worker would
        decide anew.
        """
        if not is_below(task.id, self._bound):
            return traceparent_of(task.id, None)[:-2] + "00"
        name, said = attributes.of_submit(operation, [task])
        with self._told(trace_id=int(trace_id_of(task.id, None), 16)):
            span = self._tracer.start_span(name, otel_context.Context(), SpanKind.PRODUCER, said)
        return self._begun(span)

    def _begun(self, span: Span) -> str:
        waiting = _open_submits.get()
        if waiting is None:
            span.end()
        else:
            waiting.append(span)
        return traceparent_from(span.get_span_context())

    async def around_submit(self, calls: Calls, call_next: NextSubmit) -> Sequence[Added]:
        """The spans of a submit end when the store has it, or has refused it."""
        spans: list[Span] = []
        token = _open_submits.set(spans)
        try:
            return await call_next(calls)
        except Exception as error:
            for span in spans:
                span.set_attribute(attributes.ERROR_TYPE, type(error).__qualname__)
                span.set_status(Status(StatusCode.ERROR, type(error).__qualname__))
            raise
        finally:
            for span in spans:
                span.end()
            with suppress(ValueError):  # closed from elsewhere: nothing is left to reset
                _open_submits.reset(token)

    # Runs.

    def inside(self, make: Callable[..., T], *args: Any) -> T:
        """Make a runner whose bodies have the span of their task as the current one."""
        variables = copy_context()
        variables.run(self.enter)
        return variables.run(make, *args)

    def enter(self) -> None:
        """Make it the current one from here on."""
        otel_context.attach(otel.set_span_in_context(self.current))

    def wants(self, claim: Claim) -> bool:
        """Whether this attempt is to have a span. Every attempt asks."""
        trace = claim.trace
        if trace is None:
            return claim.task_id[19:] < self._bound
        return trace[-1] in "13579bdf"

    @contextmanager
    def _told(self, *, trace_id: int | None = None, span_id: int | None = None) -> Iterator[None]:
        given = self._given
        given.trace_id, given.span_id = trace_id, span_id
        try:
            yield
        finally:
            given.trace_id = given.span_id = None

    def _attempt(self, claim: Claim, start: int, members: int = 1) -> Span:
        name, said = attributes.of_attempt(claim, members)
        trace_id, within = None, otel_context.Context()
        if claim.trace is not None:
            within = _within(claim.trace)
        elif claim.attempt > 1:
            within = _within(traceparent_of(claim.task_id, None))
        else:
            trace_id = int(trace_id_of(claim.task_id, None), 16)
        with self._told(
            trace_id=trace_id, span_id=int(span_id_of(claim.task_id, claim.attempt), 16)
        ):
            return self._tracer.start_span(name, within, SpanKind.CONSUMER, said, start_time=start)

    def _waited(self, claim: Claim, claimed: int) -> None:
        """From its submit to its claim. Two clocks may disagree about these: it is never less than
        nothing. Of later attempts nobody here knows when they began to wait.
        """
        if claim.attempt > 1 or claim.cause is not Cause.SUBMITTED:
            return
        name, said = attributes.of_wait(claim)
        within = _within(claim.trace or traceparent_of(claim.task_id, None))
        start = min(submitted_at(claim.task_id), claimed)
        span = self._tracer.start_span(name, within, SpanKind.INTERNAL, said, start_time=start)
        span.end(claimed)

    def begin(self, claims: Sequence[Claim], since: float) -> list[tuple[Claim, Span]]:
        """These run now, together; they were claimed `since` (monotonic)."""
        begun: list[tuple[Claim, Span]] = []
        try:
            now = time.time_ns()
            claimed = now - max(0, int((time.monotonic() - since) * 1e9))
            for claim in filter(self.wants, claims):
                span = self._attempt(claim, now, len(claims))
                if span.is_recording():
                    self._waited(claim, claimed)
                    self._open[claim.task_id, claim.attempt] = span
                    begun.append((claim, span))
        except Exception as error:  # noqa: BLE001 - no attempt fails because of its span
            self._failed(error)
        return begun

    def end(self, claim: Claim, span: Span, outcome: Outcome) -> None:
        """This attempt has ended thus."""
        self._open.pop((claim.task_id, claim.attempt), None)
        try:
            ended, error = attributes.end_of(outcome)
            span.set_attribute(attributes.ENDED, ended.value)
            if error is not None:
                span.set_attribute(attributes.ERROR_TYPE, error.type)
                said = {"exception.type": error.type, "exception.message": error.message}
                span.add_event("exception", said)
                span.set_status(Status(StatusCode.ERROR, f"{error.type}: {error.message}"))
            span.end()
        except Exception as problem:  # noqa: BLE001 - as above
            self._failed(problem)

    # Attempts in the hands of others.

    def given_out(self, claims: Sequence[Claim]) -> None:
        """An HTTP worker has these now."""
        now = time.time_ns()
        for claim in filter(self.wants, claims):
            self._elsewhere[claim.task_id, claim.attempt] = now
            if len(self._elsewhere) > MOST_ELSEWHERE:
                del self._elsewhere[next(iter(self._elsewhere))]
            try:
                self._waited(claim, now)
            except Exception as error:  # noqa: BLE001 - as above
                self._failed(error)

    def ended_elsewhere(self, claim: Claim, outcome: Outcome) -> None:
        """It has said how this one ended. If another server gave it out, when is not known here."""
        start = self._elsewhere.pop((claim.task_id, claim.attempt), None)
        if not self.wants(claim):
            return
        try:
            span = self._attempt(claim, time.time_ns() if start is None else start)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)
        else:
            self.end(claim, span, outcome)

    # The end.

    async def flush(self) -> None:
        """See what has ended on its way, as long as `FLUSH` at most."""
        loop, flushed = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(flushed.set)

        if self._begin_flush(tell) is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(flushed.wait(), FLUSH)

    def flush_sync(self) -> None:
        """The same for who has no loop."""
        thread = self._begin_flush(lambda: None)
        if thread is not None:
            thread.join(FLUSH)

    def _begin_flush(self, tell: Callable[[], None]) -> threading.Thread | None:
        """None if an earlier one still hangs: it had its time."""
        flush = getattr(self._provider, "force_flush", None)
        if flush is None or (self._flushing is not None and self._flushing.is_alive()):
            return None
        self._flushing = threading.Thread(target=_quietly, args=(flush, tell), daemon=True)
        self._flushing.start()
        return self._flushing

    def _failed(self, error: Exception) -> None:
        if not self._has_failed:
            self._has_failed = True
            log.error("tracing.failed", exception=trace_of(error))


def _within(traceparent: str) -> otel_context.Context:
    return otel.set_span_in_context(otel.NonRecordingSpan(context_of(traceparent)))


def _quietly(flush: Callable[[], object], tell: Callable[[], None]) -> None:
    with suppress(Exception):
        flush()
    tell()


def _our_tracer(provider: otel.TracerProvider, given: Given) -> tuple[Tracer, str]:
    """A tracer that can be told ids, if it is the SDK's, and what it samples (`bound_of`). Another
    one draws ids of its own; then what a task hands on names its trace rightly, and its span not.
    """
    tracer: Any = provider.get_tracer("holdfast")
    if not (hasattr(tracer, "id_generator") and hasattr(tracer, "sampler")):
        return tracer, EVERY
    bound = bound_of(tracer.sampler)
    tracer.id_generator = GivenIds(tracer.id_generator, given)
    tracer.sampler = TaskSampler(tracer.sampler, given)
    return tracer, bound


def current_in(span: Span) -> AbstractContextManager[Any]:
    """Make it the current span of what stands around a run."""
    return otel.use_span(span, record_exception=False, set_status_on_exception=False)
