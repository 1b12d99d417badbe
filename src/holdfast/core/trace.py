"""Trace ids: which request, flow or parent a task belongs to, in the words of W3C Trace Context.

A task keeps the `traceparent` that it was submitted with: `00-<trace id>-<parent id>-<flags>`. One
that came with none begins a trace of its own, whose id is the task's id without the dashes: a
UUIDv7 has random bits enough, and nothing need be stored or made for it.
"""

from __future__ import annotations

import re
from typing import Final

_SHAPE: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<more>-.*)?",
    re.ASCII,
).fullmatch
EXAMPLE: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
LENGTH: Final = len(EXAMPLE)
_SAMPLED: Final = "01"
"""The flag of a trace that begins here: the task's history and log lines are recorded."""


def read_traceparent(text: str) -> str | None:
    """The part of a `traceparent` that is understood, as version 00; None if it is malformed."""
    found = _SHAPE(text.strip(" \t"))
    if found is None or (found["more"] and found[0].startswith("00")):
        return None
    return "00" + found[0][2:LENGTH]


def parse_traceparent(value: object) -> str:
    """The same for who means it to be one; `ValueError` if it is malformed."""
    read = read_traceparent(value) if isinstance(value, str) else None
    if read is None:
        raise ValueError(f"expected a W3C traceparent such as {EXAMPLE}, got {value!r}")
    return read


def trace_id_of(task_id: str, trace: str | None) -> str:
    """The trace that a task belongs to: 32 hexadecimal digits."""
    if trace is not None and len(trace) == LENGTH:
        return trace[3:35]
    return task_id.replace("-", "")


def is_sampled(traceparent: str) -> bool:
    """Whether whoever gave it keeps spans of this trace."""
    return traceparent[-1] in "13579bdf"


def traceparent_of(task_id: str, trace: str | None, attempt: int = 1) -> str:
    """What whoever works for this attempt is to be told: the task's trace, and it as the parent.

    The last 16 digits of a task id are 62 random bits and two that are never both zero. Attempts
    after the first have ids of their own, made of the same bits.
    """
    flags = trace[-2:] if trace is not None and len(trace) == LENGTH else _SAMPLED
    return f"00-{trace_id_of(task_id, trace)}-{span_id_of(task_id, attempt)}-{flags}"


def span_id_of(task_id: str, attempt: int = 1) -> str:
    """The id of an attempt as a span: 16 hexadecimal digits."""
    digits = task_id.replace("-", "")[-16:]
    return digits if attempt <= 1 else f"{int(digits, 16) ^ (attempt - 1):016x}"
