"""What the overview tells beside the numbers of this moment: how things went, and what needs
somebody.

`Trends` is the seam: by default the fleet's kept numbers tell it (`fleet_trends`), and whatever
knows more can be given to `create_app(holdfast, trends=…)` instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from holdfast.core.fleet import ALIVE, WorkerInfo, WorkerStatus, for_tasks
from holdfast.core.stats import QueueStats
from holdfast.core.task import Priority, State
from holdfast.dashboard.words import duration, plural
from holdfast.server.numbers import Numbers

LONG_WAIT: Final = 300.0
"""Seconds after which a ready task that nobody has started is worth a word."""


class Minute(NamedTuple):
    """What ended within a minute; `at` is its end. Dead letters have failed."""

    at: datetime
    completed: int
    failed: int


class Wait(NamedTuple):
    """How long tasks of a priority waited to be started, in seconds."""

    priority: Priority
    p50: float
    p95: float


class Alert(NamedTuple):
    """Something that needs somebody, in words; `path` is the page where it can be seen to."""

    text: str
    path: str
    query: Mapping[str, str] = {}
    is_urgent: bool = False


class Trends(Protocol):
    """What is known of the last hour or so, each oldest first. Empty where nothing is known."""

    def minutes(self) -> Sequence[Minute]: ...

    def depths(self) -> Mapping[str, Sequence[int]]:
        """By queue: how much was ready."""
        ...

    def waits(self) -> Sequence[Wait]: ...

    def alerts(self) -> Sequence[Alert]:
        """Beside those that the numbers of this moment give (`alerts_of`)."""
        ...


def alerts_of(numbers: Numbers) -> list[Alert]:
    """What the numbers of this moment say that somebody should look at, the urgent first."""
    workers = for_tasks(numbers.workers)
    found = [
        *(alert for queue in numbers.stats.queues for alert in _of_queue(queue, workers)),
        *_of_workers(workers),
        *_of_ends(numbers.stats.last_minute),
    ]
    return sorted(found, key=lambda alert: not alert.is_urgent)


def oldest_of(queue: QueueStats) -> float | None:
    """How many seconds the oldest ready task has waited."""
    return max(
        (d.oldest_seconds for d in queue.depths if d.oldest_seconds is not None), default=None
    )


def _of_queue(queue: QueueStats, workers: Sequence[WorkerInfo]) -> list[Alert]:
    if not queue.ready:
        return []
    ready, name = plural(queue.ready, "ready task"), repr(queue.queue)
    if queue.paused:
        return [Alert(f"Queue {name} is paused, with {ready} in it.", f"/queues/{queue.queue}")]
    live = [worker for worker in workers if worker.status is WorkerStatus.ACTIVE]
    if not any(worker.queues is None or queue.queue in worker.queues for worker in live):
        text = f"No worker serves queue {name}, with {ready} in it."
        return [Alert(text, f"/queues/{queue.queue}", is_urgent=True)]
    oldest = oldest_of(queue) or 0.0
    if oldest < LONG_WAIT:
        return []
    text = f"The oldest task of queue {name} has waited for {duration(oldest)}."
    where = {"queue": queue.queue, "status": State.QUEUED.value, "sort": "created_at"}
    return [Alert(text, "/tasks", where, is_urgent=True)]


def _of_workers(workers: Sequence[WorkerInfo]) -> list[Alert]:
    found = [
        Alert(
            f"Worker {worker.id} has said nothing for longer than a lease.",
            f"/workers/{worker.id}",
            is_urgent=True,
        )
        for worker in workers
        if worker.status is WorkerStatus.SILENT
    ]
    return found + [
        Alert(f"A task keeps the event loop of worker {worker.id}.", f"/tasks/{worker.blocked_by}")
        for worker in workers
        if worker.status in ALIVE and worker.blocked_by is not None
    ]


def _of_ends(ended: Mapping[State, int]) -> list[Alert]:
    """What went wrong within the last minute."""
    found = []
    if dead := ended[State.DEAD_LETTER]:
        text = f"{plural(dead, 'task')} became dead letters within the last minute."
        found.append(Alert(text, "/dead-letters"))
    if failed := ended[State.FAILED]:
        text = f"{plural(failed, 'task')} failed for good within the last minute."
        where = {"status": State.FAILED.value, "sort": "-finished_at"}
        found.append(Alert(text, "/tasks", where))
    return found
