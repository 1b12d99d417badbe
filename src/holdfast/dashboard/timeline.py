"""The life of a task to scale: when it waited, when it ran, and how each attempt ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from holdfast.core.attempt import Attempt, History
from holdfast.core.task import Task
from holdfast.dashboard.drawing import Bar, bars
from holdfast.dashboard.words import duration, plural

MOST: Final = 200
"""Attempts that are drawn: the last ones. The table has them all."""

Part = tuple[str, str, float, float]


class Timeline(NamedTuple):
    """Bars from the first instant to the last; `says` is the whole in words."""

    bars: Sequence[Bar]
    since: datetime
    until: datetime
    says: str


def timeline(task: Task, history: History, now: datetime) -> Timeline:
    """What a task did since it was made, until its end or until now."""
    until = max(task.finished_at or now, task.created_at)
    attempts = [each for each in history.attempts if each.started_at >= task.created_at][-MOST:]
    parts = _parts(task.created_at, until, attempts)
    waited = sum(end - begin for kind, _, begin, end in parts if kind == "wait")
    ran = sum(end - begin for kind, _, begin, end in parts if kind != "wait")
    tried = f"ran {duration(ran)} in {plural(len(attempts), 'attempt')}"
    says = f"waited {duration(waited)}" + (f", {tried}" if attempts else "")
    return Timeline(bars(parts), task.created_at, until, says)


def _parts(since: datetime, until: datetime, attempts: Sequence[Attempt]) -> list[Part]:
    parts: list[Part] = []
    at = 0.0

    def wait(to: float) -> None:
        if to > at:
            parts.append(("wait", f"waited {duration(to - at)}", at, to))

    for each in attempts:
        begin = (each.started_at - since).total_seconds()
        end = ((each.ended_at or until) - since).total_seconds()
        wait(begin)
        kind = "running" if each.ended is None else each.ended.value
        label = f"attempt {each.number}: {kind.replace('_', ' ')}, {duration(end - begin)}"
        parts.append((kind, label, begin, max(begin, end)))
        at = max(begin, end)
    whole = (until - since).total_seconds()
    wait(whole)
    return parts or [("wait", "it has just been made", 0.0, 1.0)]
