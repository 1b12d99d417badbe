"""The store in numbers, and where one task stands in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.core.fleet import WorkerInfo
from holdfast.core.gate import GateState
from holdfast.core.priority import MICROSECONDS, Aging
from holdfast.core.task import Priority, State, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much of one priority waits in a queue, and how long the oldest ready task has waited."""

    priority: Priority
    ready: int
    oldest_seconds: float | None


def place_in_line(
    priority: Priority,
    depths: Sequence[Depth],
    since: Mapping[Priority, int],
    aging: Aging,
    *,
    at_most_old: float,
) -> int | None:
    """Where the newest task of this priority stands in its queue: behind all of its own and of
    higher priorities. `since` are those added after the depths were read, `at_most_old` seconds
    ago.

    None if one of a lower priority has waited for so long that it may stand before it.
    """
    start = aging.head_start(priority)
    place = 0
    for each in Priority:
        lead = (start - aging.head_start(each)) / MICROSECONDS
        depth = next((depth for depth in depths if depth.priority is each), None)
        if lead <= 0:
            place += since.get(each, 0) + (depth.ready if depth else 0)
        elif depth and depth.ready and (depth.oldest_seconds or 0.0) + at_most_old >= lead:
            return None
    return max(1, place)


@dataclass(slots=True)
class EffectiveDepth:
    """How much is worth one priority now, after what waiting has added to it, and how long the
    oldest of it has waited. `is_capped`: not all that have become worth it were counted.
    """

    ready: int = 0
    oldest_seconds: float | None = None
    is_capped: bool = False

    def add(self, number: int, oldest_seconds: float) -> None:
        """Count some more of it."""
        if number > 0:
            self.ready += number
            self.oldest_seconds = max(oldest_seconds, self.oldest_seconds or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """One queue in numbers. `ready` may start now; `waiting` has a future `run_at`; `blocked` waits
    for a lock.
    """

    queue: str
    paused: bool
    ready: int
    waiting: int
    blocked: int
    running: int
    depths: tuple[Depth, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The store in numbers, cheap to get however deep the backlog is.

    `states` counts the tasks kept now, every state a key; `last_minute` how many of those kept
    ended in each terminal state (every one a key) within the last 60 s; `refused` the stale writes
    refused since the store was created. `oldest_transaction` (seconds) keeps `dead_rows`, which
    slow claims down, from being removed; 0 where a store knows of no such thing.
    """

    queues: tuple[QueueStats, ...]
    states: Mapping[State, int]
    last_minute: Mapping[State, int]
    refused: int
    oldest_transaction: float = 0.0
    dead_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The facts behind "why is my task not running?", read at one instant of the store's clock.

    `ahead` counts the ready tasks of its queue with a smaller (rank, id), up to `ahead_cap`; None
    when the task is not ready. `gate` is the one that it stands before if it is blocked,
    and `ahead_at_gate` how many stand before it there, up to `ahead_cap`.
    `awaited` is the task whose end that gate waits for, `children` how many a parent has that
    stands behind theirs, and `culprit` the task because of which this one was dropped; whoever
    explains reads them. `ended_last_minute` is about how many tasks of its queue completed, failed
    or became dead
    letters within the last 60 s; whether those requeued or forgotten since count is the store's
    choice. `waits_for` is the event that its handler waits for; no store knows it, the client does.
    """

    now: datetime
    task: Task
    queue_paused: bool
    ahead: int | None
    ahead_cap: int
    gate: GateState | None
    ahead_at_gate: int | None
    workers: tuple[WorkerInfo, ...]
    ended_last_minute: int = 0
    awaited: Task | None = None
    children: int | None = None
    culprit: Task | None = None
    waits_for: str | None = None
