"""Spans for OpenTelemetry: submit, wait, run, deliver. Off unless the setting `otel` is on.

The trace was there before: a task keeps the `traceparent` of whoever submitted it (`core.trace`).
Here spans are made of that. **Nobody needs to remember a span**: what an attempt hands on as its
parent is made of the task's id and the attempt's number (`traceparent_of`), and the span of that
attempt is given this very id. So a child, a callback, a delivery that was stored before its run
began, and the server that takes the result of an attempt which another one gave out, all name the
right parent, and no process has to ask another.

**What is not sampled costs no span.** The decision is in the task: the flag of its `traceparent`.
A task that nobody decided about, since its submitter makes no spans, is decided by its id, so every
attempt is in or every one is out (`ids`). Such an attempt takes the worker's fast path.

**Inside a handler one span is current, and it is the same object for all runs** (`current`): it
stands for the span of whichever task is running right there. So the fast path need not set it.

Nothing waits for the receiver of spans: they are exported by a thread, and dropped if there are too
many. What is left at the end of a worker or a program has two seconds to get away (`setup`).

OpenTelemetry is imported by `setup`, `spans`, `ids` and `current`, which nobody imports before the
setting is on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.definitions.middleware import Installed
    from holdfast.tracing.spans import Spans


def spans_for(settings: Settings) -> Spans | None:
    """What makes the spans of this process; None if there are to be none. `ConfigError` if they
    cannot be made.
    """
    if not settings.otel:
        return None
    from holdfast.tracing.setup import spans_of_this_process  # noqa: PLC0415 - 100 ms, for few

    return spans_of_this_process()


def trace_submits(settings: Settings, installed: Installed) -> None:
    """Make spans of what is submitted through this middleware, from now on."""
    spans = spans_for(settings)
    if spans is not None and spans.around_submit not in installed.submit:
        installed.submit.insert(0, spans.around_submit)
