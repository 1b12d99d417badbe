"""Answers questions, each at one instant: in a snapshot of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final

from holdfast.core.attempt import Claim, Event, History
from holdfast.core.fleet import Requests, WorkerInfo
from holdfast.core.gate import GateState
from holdfast.core.ids import is_task_id
from holdfast.core.query import TaskFilter
from holdfast.core.stats import Standing
from holdfast.core.task import Task, TaskId, WorkerId
from holdfast.stores.columns import as_time
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.filters import bind, query
from holdfast.stores.postgres.lanes import Lanes
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.values import (
    Row,
    attempt_of,
    can_be_text,
    claim_of,
    event_of,
    gate_of,
    last_attempt_of,
    safe_text,
    task_of,
    worker_of,
)

_AHEAD_CAP: Final = 1000


@asynccontextmanager
async def snapshot(db: Connection, sql: Queries) -> AsyncIterator[None]:
    """Everything read inside is from one instant, with plans that walk indexes."""
    async with db.transaction(isolation="repeatable_read", readonly=True):
        await db.execute(sql["pin"])
        yield


async def tasks(db: Connection, sql: Queries, lanes: Lanes, ids: Sequence[TaskId]) -> list[Task]:
    """These tasks as they are now, oldest first."""
    rows = await db.fetch(sql["pictures"], list(ids))
    known = await lanes.know(db, {row["lane"] for row in rows})
    return [task_of(row, known[row["lane"]]) for row in rows]


async def get(db: Connection, sql: Queries, lanes: Lanes, task_id: TaskId) -> Task | None:
    found = await tasks(db, sql, lanes, [task_id] if is_task_id(task_id) else [])
    return found[0] if found else None


async def count(db: Connection, sql: Queries, where: TaskFilter, *, limit: int) -> int:
    async with snapshot(db, sql):
        found = await query(db, sql, where, in_order=False)
        if found is None:
            return 0
        bound = bind(found, sql["count_of"], sql["up_to_limit"], limit=max(0, limit))
        return int(await db.fetchval(bound.text, *bound.arguments))


async def history(db: Connection, sql: Queries, task_id: TaskId) -> History | None:
    if not is_task_id(task_id):
        return None
    async with snapshot(db, sql):
        row = await db.fetchrow(sql["pictures"], [task_id])
        if row is None:
            return None
        attempts = [attempt_of(each) for each in await db.fetch(sql["attempts"], task_id)]
        events = [event_of(each) for each in await db.fetch(sql["events"], task_id)]
    if row["place"] == "running" or row["ended"] is not None:
        attempts.append(last_attempt_of(row))
    submitted = Event(at=as_time(row["created_at"]), kind="submitted")
    return History(attempts=tuple(attempts), events=(submitted, *events))


async def standing(
    db: Connection, sql: Queries, lanes: Lanes, task_id: TaskId, now: int | None
) -> Standing | None:
    if not is_task_id(task_id):
        return None
    async with snapshot(db, sql):
        row = await db.fetchrow(sql["pictures"], [task_id])
        if row is None:
            return None
        known = await lanes.know(db, [row["lane"]])
        task = task_of(row, known[row["lane"]])
        at = await db.fetchval(sql["now"], now)
        gate = next(iter(await gates(db, sql, [row["gate"]], "", 1)), None) if row["gate"] else None
        return Standing(
            now=as_time(at),
            task=task,
            queue_paused=await db.fetchval(sql["is_paused"], task.queue),
            ahead=await _ahead(db, sql, row, task),
            ahead_cap=_AHEAD_CAP,
            gate=gate,
            ahead_at_gate=await _ahead_at(db, sql, gate, task),
            workers=tuple(await workers(db, sql)),
            ended_last_minute=await db.fetchval(sql["ended_last_minute"], task.queue, at),
        )


async def _ahead(db: Connection, sql: Queries, row: Row, task: Task) -> int | None:
    if row["place"] != "ready":
        return None
    return int(await db.fetchval(sql["ahead"], task.queue, task.rank, task.id, _AHEAD_CAP))


async def _ahead_at(db: Connection, sql: Queries, gate: GateState | None, task: Task) -> int | None:
    if gate is None:
        return None
    asked = (gate.name, task.rank, task.id, _AHEAD_CAP)
    return int(await db.fetchval(sql["ahead_at_gate"], *asked))


async def gates(
    db: Connection, sql: Queries, names: Collection[str] | None, after: str, limit: int
) -> list[GateState]:
    wanted = None if names is None else [name for name in names if can_be_text(name)]
    rows = await db.fetch(sql["gates"], wanted, safe_text(after), max(0, limit))
    return [gate_of(row) for row in rows]


async def requests(db: Connection, sql: Queries, worker_id: WorkerId) -> Requests:
    row = await db.fetchrow(sql["requests"], safe_text(worker_id))
    return Requests() if row is None else Requests(*row)


async def workers(db: Connection, sql: Queries) -> list[WorkerInfo]:
    return [worker_of(row) for row in await db.fetch(sql["workers"])]


async def orphans(db: Connection, sql: Queries, lanes: Lanes, *, limit: int) -> list[Claim]:
    ids = await db.fetchval(sql["orphans"], limit)
    if not ids:
        return []
    rows = [r for r in await db.fetch(sql["pictures"], ids) if r["place"] == "running"]
    known = await lanes.know(db, {row["lane"] for row in rows})
    return [claim_of(row, known[row["lane"]]) for row in rows]
