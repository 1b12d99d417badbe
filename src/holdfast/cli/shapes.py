"""The JSON that `--json` prints: one function per noun, keys stable once released. A task is what
`Task.to_dict()` makes of it (`core.picture`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from holdfast.core.fleet import shown_capabilities
from holdfast.core.picture import iso
from holdfast.core.task import Json

if TYPE_CHECKING:
    from holdfast.core.attempt import Attempt, Event, History
    from holdfast.core.fleet import WorkerInfo
    from holdfast.core.query import Page
    from holdfast.core.stats import QueueStats, Stats
    from holdfast.core.why import Why


def page_of(page: Page) -> Json:
    return {"tasks": [task.to_dict() for task in page.tasks], "next": page.next}


def attempt_of(attempt: Attempt) -> Json:
    return {
        "number": attempt.number,
        "cause": attempt.cause.value,
        "worker_id": attempt.worker_id,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "ended": attempt.ended.value if attempt.ended else None,
        "seconds": attempt.seconds,
        "charged": attempt.charged,
        "error": asdict(attempt.error) if attempt.error else None,
    }


def event_of(event: Event) -> Json:
    return {
        "at": iso(event.at),
        "kind": event.kind,
        "attempt": event.attempt,
        "worker_id": event.worker_id,
        "detail": event.detail,
    }


def history_of(task_id: str, history: History) -> Json:
    return {
        "task_id": task_id,
        "attempts": [attempt_of(attempt) for attempt in history.attempts],
        "events": [event_of(event) for event in history.events],
    }


def why_of(why: Why) -> Json:
    return {
        "task_id": why.task_id,
        "state": why.state.value,
        "reasons": [{"code": code, "message": text} for code, text in why.reasons],
        "ahead": why.ahead,
        "ahead_is_capped": why.ahead_is_capped,
        "eta_seconds": why.eta_seconds,
    }


def worker_of(worker: WorkerInfo) -> Json:
    return {
        "id": worker.id,
        "status": worker.status.value,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "queues": None if worker.queues is None else list(worker.queues),
        "capabilities": shown_capabilities(worker.capabilities),
        "capacity": worker.capacity,
        "load": worker.load,
        "kind": worker.kind,
        "drain_requested": worker.drain_requested,
        "blocked_by": worker.blocked_by,
        "beats": worker.beats,
        "started_at": iso(worker.started_at),
        "beat_at": iso(worker.beat_at),
    }


def queue_of(queue: QueueStats) -> Json:
    return {
        "queue": queue.queue,
        "paused": queue.paused,
        "ready": queue.ready,
        "waiting": queue.waiting,
        "blocked": queue.blocked,
        "running": queue.running,
        "depths": [
            {
                "priority": depth.priority.value,
                "ready": depth.ready,
                "oldest_seconds": depth.oldest_seconds,
            }
            for depth in queue.depths
        ],
    }


def stats_of(stats: Stats) -> Json:
    return {
        "states": {state.value: count for state, count in stats.states.items()},
        "last_minute": {state.value: count for state, count in stats.last_minute.items()},
        "refused": stats.refused,
        "queues": [queue_of(queue) for queue in stats.queues],
    }
