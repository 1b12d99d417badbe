"""Queues as people look at them: how deep, how old, who serves them, and what waiting does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.fleet import WorkerInfo, WorkerStatus, for_tasks
from holdfast.core.priority import Aging
from holdfast.core.stats import Depth, QueueStats
from holdfast.core.task import Priority
from holdfast.dashboard.drawing import Line, line
from holdfast.dashboard.overview import Trends, oldest_of
from holdfast.dashboard.words import duration
from holdfast.server.numbers import Numbers


class QueueRow(NamedTuple):
    """One queue. `depths` has every priority, `oldest` are seconds, `line` is the depth over time;
    `servers` are the workers that take its tasks now.
    """

    queue: QueueStats
    depths: Mapping[Priority, Depth]
    oldest: float | None
    servers: Sequence[WorkerInfo]
    is_open: bool
    line: Line | None
    says: str

    @property
    def is_empty(self) -> bool:
        stats = self.queue
        return not (stats.ready or stats.waiting or stats.blocked or stats.running)


def rows_of(numbers: Numbers, trends: Trends, open_queues: Collection[str]) -> list[QueueRow]:
    """Every queue that has tasks, is paused or open, or that a live worker names; the deepest
    first.
    """
    known = {stats.queue: stats for stats in numbers.stats.queues}
    named = {name for worker in _active(numbers) for name in worker.queues or ()}
    names = {*known, *named, *open_queues}
    rows = [row_of(name, numbers, trends, open_queues) for name in names]
    return sorted(rows, key=lambda row: (-row.queue.ready, row.is_empty, row.queue.queue))


def row_of(
    name: str, numbers: Numbers, trends: Trends, open_queues: Collection[str] = ()
) -> QueueRow:
    """One of them, also one that nothing is known of."""
    stats = next((each for each in numbers.stats.queues if each.queue == name), None) or idle(name)
    depths = {depth.priority: _whole(depth) for depth in stats.depths}
    seen = trends.depths().get(name, ())
    oldest = oldest_of(stats)
    return QueueRow(
        queue=stats,
        depths={each: depths.get(each, _nothing(each)) for each in Priority},
        oldest=None if oldest is None else round(oldest),
        servers=[w for w in _active(numbers) if w.queues is None or name in w.queues],
        is_open=name in open_queues,
        line=line(seen),
        says=f"from {seen[0]:,} to {seen[-1]:,} ready, {max(seen):,} at most" if seen else "",
    )


def idle(name: str) -> QueueStats:
    """A queue with nothing in it."""
    return QueueStats(queue=name, paused=False, ready=0, waiting=0, blocked=0, running=0, depths=())


def what_waiting_does(aging: Aging) -> list[str]:
    """How priorities age, in sentences."""
    said = []
    for priority in (Priority.LOW, Priority.NORMAL):
        steps = sorted(aging.steps(priority), key=lambda step: step[1])
        if steps:
            turns = [f"as {other} after {duration(seconds)}" for other, seconds in steps]
            said.append(f"A {priority} task that is ready counts {', '.join(turns)}.")
    said.append("Critical tasks go first whatever waits: no waiting makes a task critical.")
    return said


def _active(numbers: Numbers) -> list[WorkerInfo]:
    return [w for w in for_tasks(numbers.workers) if w.status is WorkerStatus.ACTIVE]


def _nothing(priority: Priority) -> Depth:
    return Depth(priority=priority, ready=0, oldest_seconds=None)


def _whole(depth: Depth) -> Depth:
    """Not more exact than it is looked at: a page that changes is sent again."""
    seconds = depth.oldest_seconds
    return Depth(
        priority=depth.priority,
        ready=depth.ready,
        oldest_seconds=None if seconds is None else round(seconds),
    )
