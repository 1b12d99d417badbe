"""The JSON that `--json` prints: one function per noun, keys stable once released.

Instants are UTC ISO 8601, durations are seconds and say so in their name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.cli.words import iso
from holdfast.core.fleet import shown_capabilities
from holdfast.core.limits import shown_retries
from holdfast.core.task import Json

if TYPE_CHECKING:
    from holdfast.core.attempt import Attempt, Event, History
    from holdfast.core.fleet import WorkerInfo
    from holdfast.core.query import Page
    from holdfast.core.stats import QueueStats, Stats
    from holdfast.core.task import Progress, Task, TaskError
    from holdfast.core.why import Why


def decoded(raw: bytes | None) -> Json:
    """Stored JSON as a value; bytes that are none (encrypted, say) as text."""
    if raw is None:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def masked(payload: bytes) -> Json:
    """A task's arguments as anybody may see them."""
    from holdfast.codec import secrets  # noqa: PLC0415 - brings Pydantic, which not all need

    return secrets.masked(payload)


def error_of(error: TaskError | None) -> Json:
    if error is None:
        return None
    return {
        "type": error.type,
        "message": error.message,
        "traceback": error.traceback,
        "retriable": error.retriable,
    }


def progress_of(progress: Progress | None) -> Json:
    if progress is None:
        return None
    return {"done": progress.done, "total": progress.total, "message": progress.message}


def task_of(task: Task) -> Json:
    """The whole picture of one task."""
    return {
        "id": task.id,
        "name": task.name,
        "queue": task.queue,
        "priority": task.priority.value,
        "state": task.state.value,
        "reason": task.reason.value if task.reason else None,
        "payload": masked(task.payload),
        "result": decoded(task.result),
        "error": error_of(task.error),
        "progress": progress_of(task.progress),
        "attempt": task.attempt,
        "charged": task.charged,
        "max_retries": shown_retries(task.max_retries),
        "crash_count": task.crash_count,
        "cause": task.cause.value,
        "timeout_seconds": task.timeout,
        "created_at": iso(task.created_at),
        "run_at": iso(task.run_at),
        "expires_at": iso(task.expires_at),
        "started_at": iso(task.started_at),
        "finished_at": iso(task.finished_at),
        "worker_id": task.worker_id,
        "lock": task.lock,
        "fence": task.fence,
        "requires": shown_capabilities(task.requires),
        "tags": list(task.tags),
        "owner": task.owner,
        "unique_key": task.unique_key,
        "idempotency_key": task.idempotency_key,
        "parent_id": task.parent_id,
        "trace_id": task.trace_id,
        "traceparent": task.traceparent,
        "cancel_requested": task.cancel_requested,
        "cost": {
            "units": task.cost.units,
            "tokens_in": task.cost.tokens_in,
            "tokens_out": task.cost.tokens_out,
        },
    }


def page_of(page: Page) -> Json:
    return {"tasks": [task_of(task) for task in page.tasks], "next": page.next}


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
        "error": error_of(attempt.error),
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
