"""The first page: how it stands, how it went lately, and what needs somebody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from holdfast.core.fleet import WorkerInfo, WorkerStatus, for_tasks
from holdfast.core.query import Order, TaskFilter
from holdfast.core.stats import QueueStats, Stats
from holdfast.core.task import State
from holdfast.dashboard.drawing import Line, line
from holdfast.dashboard.overview import Trends, alerts_of, oldest_of
from holdfast.dashboard.page import READ, Page, Shown, View
from holdfast.server.numbers import Numbers

page = Page("/", "overview.html", "Overview", rule=READ)

WENT_WRONG: Final = frozenset({State.FAILED, State.DEAD_LETTER})
UNDER_WAY: Final = frozenset({State.RUNNING, State.RETRYING, State.BLOCKED, State.QUEUED})
MOST: Final = 8
MOST_WORKERS: Final = 20
MOST_QUEUES: Final = 50


class QueueRow(NamedTuple):
    """One queue of the table. `oldest` are seconds, `line` is its depth over time."""

    queue: QueueStats
    oldest: float | None
    line: Line | None
    says: str


@page.read
async def read(view: View) -> Shown:
    lists = {
        "wrong": await _tasks(view, WENT_WRONG, Order.LAST_ENDED),
        "is_bound": view.token.bounds.is_narrow,
    }
    if view.token.bounds.is_narrow:
        return lists | {"under_way": await _tasks(view, UNDER_WAY, Order.NEWEST)}
    client = await view.verbs()
    numbers = await view.service.gauge.numbers(client)
    return lists | _of_numbers(numbers, view.trends)


def _of_numbers(numbers: Numbers, trends: Trends) -> Shown:
    workers = for_tasks(numbers.workers)
    stats, minutes = numbers.stats, trends.minutes()
    return {
        "stats": stats,
        "tiles": _tiles(stats, workers),
        "queues": _queues(stats, trends)[:MOST_QUEUES],
        "queues_left": max(0, len(stats.queues) - MOST_QUEUES),
        "workers": _alive(workers)[:MOST_WORKERS],
        "workers_left": max(0, len(_alive(workers)) - MOST_WORKERS),
        "minutes": minutes,
        "completed": line([each.completed for each in minutes]),
        "failed": line([each.failed for each in minutes]),
        "waits": trends.waits(),
        "alerts": [*alerts_of(numbers), *trends.alerts()],
        "has_tasks": any(stats.states.values()),
    }


class Tile(NamedTuple):
    """One number; `path` leads to what it counts."""

    title: str
    value: int
    path: str
    query: dict[str, object]
    kind: str = ""


def _tiles(stats: Stats, workers: Sequence[WorkerInfo]) -> list[Tile]:
    ready = sum(queue.ready for queue in stats.queues)
    waiting = sum(queue.waiting for queue in stats.queues)
    states = stats.states
    active = sum(worker.status is WorkerStatus.ACTIVE for worker in workers)
    return [
        Tile("Ready", ready, "/tasks", {"status": "queued"}),
        Tile("Running", states[State.RUNNING], "/tasks", {"status": "running"}, "running"),
        Tile("Waiting for their time", waiting, "/tasks", {"status": ["queued", "retrying"]}),
        Tile("Blocked", states[State.BLOCKED], "/tasks", {"status": "blocked"}, "blocked"),
        Tile("Dead letters", states[State.DEAD_LETTER], "/dead-letters", {}, "bad"),
        Tile("Workers", active, "/workers", {}),
    ]


def _queues(stats: Stats, trends: Trends) -> list[QueueRow]:
    depths = trends.depths()
    rows = []
    for queue in sorted(stats.queues, key=lambda each: (-each.ready, each.queue)):
        seen = depths.get(queue.queue, ())
        says = f"from {seen[0]:,} to {seen[-1]:,} ready, {max(seen):,} at most" if seen else ""
        rows.append(QueueRow(queue, _whole(oldest_of(queue)), line(seen), says))
    return rows


def _alive(workers: Sequence[WorkerInfo]) -> list[WorkerInfo]:
    shown = (WorkerStatus.ACTIVE, WorkerStatus.DRAINING, WorkerStatus.SILENT)
    return [worker for worker in workers if worker.status in shown]


def _whole(seconds: float | None) -> float | None:
    """Not more exact than it is looked at: a page that changes is sent again."""
    return None if seconds is None else round(seconds)


async def _tasks(view: View, states: frozenset[State], order: Order) -> Sequence[Shown]:
    which = TaskFilter(states=states)
    found = await (await view.reach()).list(which, limit=MOST, after=None, order=order)
    tasks: Sequence[Shown] = (await view.service.view()).page(found)["tasks"]
    return tasks
