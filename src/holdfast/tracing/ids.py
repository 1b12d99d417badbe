"""Spans with ids of our choice, and sampling by the ids of tasks.

OpenTelemetry draws an id for every span. Ours are known before: those of attempts (`core.trace`),
and the trace that begins with a task, whose id is the task's. So our own tracer gets a generator
that can be told. It is ours alone: spans of the program have their ids from wherever they had them.

Samplers by ratio look at the last 64 bits of a trace id. In a task's id the first two of these are
fixed, so the 62 random ones are moved up for them.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from holdfast.core.task import TaskId

EVERY: Final = "g"
"""A bound that every task is below."""
NONE: Final = ""
_RANDOM: Final = (1 << 62) - 1
_LAST_64: Final = (1 << 64) - 1


class Given(threading.local):
    """The ids that the next span is to have; None is one that is drawn."""

    trace_id: int | None = None
    span_id: int | None = None


class GivenIds:
    """A generator of ids that can be told."""

    def __init__(self, inner: Any, given: Given) -> None:
        self._inner = inner
        self._given = given

    def generate_trace_id(self) -> int:
        told = self._given.trace_id
        drawn: int = self._inner.generate_trace_id() if told is None else told
        return drawn

    def generate_span_id(self) -> int:
        told = self._given.span_id
        drawn: int = self._inner.generate_span_id() if told is None else told
        return drawn

    def is_trace_id_random(self) -> bool:
        """As far as W3C asks: its last 56 bits are."""
        return True


class TaskSampler:
    """The program's sampler; shown a task's random bits where the trace begins with the task."""

    def __init__(self, inner: Any, given: Given) -> None:
        self._inner = inner
        self._given = given

    def should_sample(
        self, parent_context: Any, trace_id: int, name: str, *more: Any, **named: Any
    ) -> Any:
        if trace_id == self._given.trace_id:
            trace_id = spread(trace_id)
        return self._inner.should_sample(parent_context, trace_id, name, *more, **named)

    def get_description(self) -> str:
        said: str = self._inner.get_description()
        return said


def spread(trace_id: int) -> int:
    """The id with its random bits where samplers look for them."""
    return trace_id & ~_LAST_64 | (trace_id & _RANDOM) << 2


def bound_of(sampler: Any) -> str:
    """Which traces that begin with a task are sampled: those of ids whose second half is below this
    text. `EVERY`, if only the sampler knows.
    """
    root = getattr(sampler, "_root", sampler)
    bound = getattr(root, "bound", None)
    if isinstance(bound, int):
        half = f"{(0b10 << 62) + (bound >> 2):016x}"
        return f"{half[:4]}-{half[4:]}"
    is_off = hasattr(root, "get_description") and root.get_description() == "AlwaysOffSampler"
    return NONE if is_off else EVERY


def is_below(task_id: TaskId, bound: str) -> bool:
    """Whether the trace that begins with this task is sampled."""
    return task_id[19:] < bound


def submitted_at(task_id: TaskId) -> int:
    """When the id was made, by the clock of who made it: nanoseconds since 1970."""
    return int(task_id[:8] + task_id[9:13], 16) * 1_000_000
