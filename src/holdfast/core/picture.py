"""A task as plain data: what `Task.to_dict()` returns and `--json` prints. Keys are stable.

Instants are UTC ISO 8601, durations are seconds and say so in their name.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

from holdfast.core.fleet import shown_capabilities
from holdfast.core.limits import shown_retries
from holdfast.core.task import Json, Task


def iso(at: datetime | None) -> str | None:
    """An instant for machines: UTC, ISO 8601, always with microseconds."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="microseconds")


def picture_of(task: Task) -> dict[str, Json]:
    """The whole picture of one task."""
    return {
        "id": task.id,
        "name": task.name,
        "queue": task.queue,
        "priority": task.priority.value,
        "state": task.state.value,
        "reason": task.reason.value if task.reason else None,
        "payload": task.arguments,
        "result": task.value,
        "error": asdict(task.error) if task.error else None,
        "progress": asdict(task.progress) if task.progress else None,
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
        "cost": asdict(task.cost),
    }
