"""Which trace a new task belongs to: the trace of whoever submits it.

OpenTelemetry is no dependency. Where the program has imported it, its current span is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.core.task import NewTask
from holdfast.definitions.context import current_context

spans_of_submits: Callable[[Sequence[NewTask], str | None, str], Sequence[NewTask]] | None = None
"""Makes spans of submits, where that is switched on (`holdfast.tracing`): the tasks, the trace that
those belong to which name none, and what is done to them.
"""


def current_traceparent() -> str | None:
    """The W3C `traceparent` of what is done right here: the running task, else the current span.

    A span that is part of the running task's trace is nearer than the task itself. A span of
    another trace is not asked: what a task submits stays with that task.
    """
    running = current_context()
    # Not imported here: that takes 30 ms, and whoever has a span has imported it.
    tracing = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        return None if running is None else running.traceparent
    span = _span(tracing)
    if running is None:
        return span
    own = running.traceparent
    return span if span is not None and span[3:35] == own[3:35] else own


def _span(tracing: Any) -> str | None:
    if not hasattr(tracing, "get_current_span"):  # its import is under way
        return None
    span = tracing.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"
