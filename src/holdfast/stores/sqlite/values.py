"""Between columns and values: times, errors, and the rows of a task."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import orjson

from holdfast.core.attempt import Claim
from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.gate import GateKind, gates_from
from holdfast.core.task import (
    Cause,
    Cost,
    Reason,
    State,
    Task,
    TaskId,
    WorkerId,
)
from holdfast.stores.columns import as_time, error_of, maybe_time, progress_of
from holdfast.stores.sqlite.lanes import Lane


def safe_text(text: str) -> str:
    """Text as SQLite can keep and compare it: a lone surrogate becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def task_of(row: sqlite3.Row, lane: Lane) -> Task:
    return Task(
        id=row["id"],
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
        timeout=_seconds(row["timeout"]),
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
        tags=tuple(orjson.loads(row["tags"] or "[]")),
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
        cancel_requested=bool(row["cancel_requested"]),
        callback=row["callback"],
        gates=tuple(gate for gate in gates_from(row["gates"]) if gate.kind is not GateKind.LOCK),
        counts=tuple(orjson.loads(row["counts"] or "[]")),
    )


def claim_of(row: sqlite3.Row, lane: Lane) -> Claim:
    """The claim as it was handed out, but for the cancel request that may have come since."""
    return Claim(
        TaskId(row["id"]), row["attempt"], WorkerId(row["worker_id"]), row["name"], lane.queue,
        lane.priority, row["payload"], row["charged"], row["max_retries"], row["crash_count"],
        _seconds(row["timeout"]), row["retry"], row["lock_key"], row["fence"], Cause(row["cause"]),
        row["trace"], row["owner"], bool(row["cancel_requested"]),
    )  # fmt: skip


def worker_of(row: sqlite3.Row) -> WorkerInfo:
    queues: Sequence[str] | None = orjson.loads(row["queues"]) if row["queues"] else None
    return WorkerInfo(
        id=row["id"],
        host=row["host"],
        pid=row["pid"],
        version=row["version"],
        queues=None if queues is None else tuple(queues),
        capabilities=frozenset(orjson.loads(row["capabilities"])),
        capacity=row["capacity"],
        load=row["load"],
        status=WorkerStatus(row["status"]),
        beats=row["beats"],
        started_at=as_time(row["started_at"]),
        beat_at=as_time(row["beat_at"]),
        kind=row["kind"],
        drain_requested=bool(row["drain_requested"]),
        blocked_by=TaskId(row["blocked_by"]) or None,
    )


def _seconds(text: str | None) -> float | None:
    return None if text is None else float(text)
