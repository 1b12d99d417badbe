"""Between columns and values: times, errors, and the rows of a task."""

from __future__ import annotations

import asyncpg

from holdfast.core.attempt import Attempt, Claim, Event
from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.gate import GateState, gates_from
from holdfast.core.task import (
    AttemptEnd,
    Cause,
    Cost,
    Reason,
    State,
    Task,
    TaskId,
    WorkerId,
)
from holdfast.stores.columns import as_time, error_of, maybe_time, progress_of
from holdfast.stores.postgres.lanes import Lane

Row = asyncpg.Record


def safe_text(text: str) -> str:
    """Text as PostgreSQL can keep it: NUL and lone surrogates become question marks."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "?").encode("utf-8", "replace").decode()


def can_be_text(text: str) -> bool:
    """Whether there can be such text in the database at all."""
    return safe_text(text) == text


def task_of(row: Row, lane: Lane) -> Task:
    return Task(
        id=TaskId(str(row["id"])),
        name=row["name"],
        queue=lane.queue,
        priority=lane.priority,
        state=State(row["state"]),
        payload=row["payload"],
        created_at=as_time(row["created_at"]),
        run_at=as_time(row["run_at"]),
        rank=row["rank"],
        attempt=row["attempt"],
        charged=row["charged"],
        max_retries=row["max_retries"],
        crash_count=row["crash_count"],
        cause=Cause(row["cause"]),
        timeout=row["timeout"],
        retry=row["retry"],
        expires_at=maybe_time(row["expires_at"]),
        started_at=maybe_time(row["started_at"]),
        finished_at=maybe_time(row["finished_at"]),
        worker_id=row["worker_id"],
        unique_key=row["unique_key"],
        idempotency_key=row["idempotency_key"],
        lock=row["lock_key"],
        fence=row["fence"],
        requires=lane.requires,
        tags=tuple(row["tags"] or ()),
        owner=row["owner"],
        trace=row["trace"],
        parent_id=row["parent_id"],
        result=row["result"],
        error=error_of(row["error"]),
        reason=Reason(row["reason"]) if row["reason"] else None,
        progress=progress_of(row["progress"]),
        cost=Cost(
            units=row["cost_units"], tokens_in=row["tokens_in"], tokens_out=row["tokens_out"]
        ),
        cancel_requested=row["cancel_requested"],
        callback=row["callback"],
        gates=gates_from(row["gates"]),
        counts=tuple(row["counts"] or ()),
    )


def claim_of(row: Row, lane: Lane) -> Claim:
    """The claim as it was handed out, but for the cancel request that may have come since."""
    return Claim.of(task_of(row, lane))


def worker_of(row: Row) -> WorkerInfo:
    queues: list[str] | None = row["queues"]
    return WorkerInfo(
        id=row["id"],
        host=row["host"],
        pid=row["pid"],
        version=row["version"],
        queues=None if queues is None else tuple(queues),
        capabilities=frozenset(row["capabilities"]),
        capacity=row["capacity"],
        load=row["load"],
        status=WorkerStatus(row["status"]),
        beats=row["beats"],
        started_at=as_time(row["started_at"]),
        beat_at=as_time(row["beat_at"]),
        kind=row["kind"],
        drain_requested=row["drain_requested"],
        blocked_by=TaskId(row["blocked_by"]) or None,
    )


def attempt_of(row: Row) -> Attempt:
    return Attempt(
        number=row["number"],
        cause=Cause(row["cause"]),
        worker_id=row["worker_id"],
        started_at=as_time(row["started_at"]),
        ended_at=as_time(row["ended_at"]),
        ended=AttemptEnd(row["ended"]),
        charged=row["charged"],
        error=error_of(row["error"]),
    )


def last_attempt_of(row: Row) -> Attempt:
    """The attempt that is still in the task's own picture: running, or the one that ended it."""
    is_over = row["place"] == "done"
    return Attempt(
        number=row["attempt"],
        cause=Cause(row["cause"]),
        worker_id=WorkerId(row["worker_id"]),
        started_at=as_time(row["started_at"]),
        ended_at=as_time(row["finished_at"]) if is_over else None,
        ended=AttemptEnd(row["ended"]) if is_over else None,
        charged=row["ended_charged"],
        error=error_of(row["error"]) if is_over else None,
    )


def event_of(row: Row) -> Event:
    return Event(
        at=as_time(row["at"]),
        kind=row["kind"],
        attempt=row["attempt"],
        worker_id=row["worker_id"],
        detail=row["detail"],
    )


def gate_of(row: Row) -> GateState:
    return GateState(**dict(row))
