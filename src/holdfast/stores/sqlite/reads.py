"""Answers questions, on a reader's connection, at one instant."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from holdfast.core.attempt import Attempt, Claim, Event, History
from holdfast.core.fleet import Requests, WorkerInfo
from holdfast.core.gate import GateState
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import Edge, Order, Page, TaskFilter, page_of
from holdfast.core.stats import Standing
from holdfast.core.task import AttemptEnd, Cause, Priority, Task, TaskId, WorkerId
from holdfast.stores.columns import as_time, error_of, in_us
from holdfast.stores.sqlite.filters import narrowed, query
from holdfast.stores.sqlite.gate_lines import gate_states
from holdfast.stores.sqlite.lanes import Lanes
from holdfast.stores.sqlite.numbers import ended_last_minute
from holdfast.stores.sqlite.queries import (
    FILTERS,
    GATES,
    HISTORY,
    QUEUES,
    TASKS,
    WORKERS,
    Value,
)
from holdfast.stores.sqlite.tally import DONE, READY, RUNNING
from holdfast.stores.sqlite.values import claim_of, safe_text, task_of, worker_of

_AHEAD_CAP: Final = 1000
_ORDERS: Final = {
    Order.NEWEST: "page_newest",
    Order.OLDEST: "page_oldest",
    Order.LAST_ENDED: "page_last_ended",
    Order.FIRST_ENDED: "page_first_ended",
}


def get(db: sqlite3.Connection, lanes: Lanes, task_id: TaskId) -> Task | None:
    row = _row(db, task_id)
    return None if row is None else task_of(row, lanes.lookup(db, row["lane"]))


def page(
    db: sqlite3.Connection,
    lanes: Lanes,
    where: TaskFilter,
    *,
    limit: int,
    edge: Edge | None,
    order: Order,
) -> Page:
    """One row more than asked for tells whether there is another page."""
    if limit <= 0:
        return Page(tasks=())
    if order.is_by_end:
        where = narrowed(where, TERMINAL)
    found = query(db, where, **_behind(edge, order))
    is_ended = [FILTERS["and_ended"]] if order.is_by_end else []
    sql = " ".join([FILTERS["columns"], found.text, *is_ended, FILTERS[_ORDERS[order]]])
    rows = db.execute(sql, found.values | {"limit": limit + 1}).fetchall()
    tasks = [task_of(row, lanes.lookup(db, row["lane"])) for row in rows]
    return page_of(tasks, limit=limit, order=order)


def _behind(edge: Edge | None, order: Order) -> dict[str, Value]:
    """The clauses for what comes after the page before, with their values."""
    if edge is None:
        return {}
    if edge.ended_at is None:
        return {"later_than" if order.is_ascending else "after": edge.task_id}
    side = "ended_later_than" if order.is_ascending else "ended_after"
    return {side: in_us(edge.ended_at), "edge": edge.task_id}


def count(db: sqlite3.Connection, where: TaskFilter, *, limit: int) -> int:
    found = query(db, where)
    sql = " ".join((FILTERS["count_of"], found.text, FILTERS["up_to_limit"]))
    (number,) = db.execute(sql, found.values | {"limit": max(0, limit)}).fetchone()
    return int(number)


def count_ready(
    db: sqlite3.Connection, queue: str | None, priority: Priority, rank: int, limit: int
) -> int:
    named = None if queue is None else safe_text(queue)
    asked = {"queue": named, "priority": priority.value, "rank": rank, "limit": limit}
    (number,) = db.execute(TASKS["count_ready"], asked).fetchone()
    return int(number)


def history(db: sqlite3.Connection, task_id: TaskId) -> History | None:
    task = _row(db, task_id)
    if task is None:
        return None
    attempts = [_attempt(row) for row in db.execute(HISTORY["attempts"], (task["seq"],))]
    if task["place"] == RUNNING or task["ended"] is not None:
        attempts.append(_last_attempt(task))
    submitted = Event(at=as_time(task["created_at"]), kind="submitted")
    events = [_event(row) for row in db.execute(HISTORY["events"], (task["seq"],))]
    return History(attempts=tuple(attempts), events=(submitted, *events))


def standing(db: sqlite3.Connection, lanes: Lanes, task_id: TaskId, *, now: int) -> Standing | None:
    row = _row(db, task_id)
    if row is None:
        return None
    task = task_of(row, lanes.lookup(db, row["lane"]))
    return Standing(
        now=as_time(now),
        task=task,
        queue_paused=task.queue in {queue for (queue,) in db.execute(QUEUES["paused"])},
        ahead=_ahead(db, task) if row["place"] == READY else None,
        ahead_cap=_AHEAD_CAP,
        gate=_gate(db, row["waits_for"]),
        ahead_at_gate=_ahead_at_gate(db, task, row["waits_for"]),
        workers=tuple(workers(db)),
        ended_last_minute=ended_last_minute(db, task.queue, now=now),
    )


def requests(db: sqlite3.Connection, worker_id: WorkerId) -> Requests:
    rows = db.execute(WORKERS["requests"], (safe_text(worker_id),)).fetchall()
    asked = [task_id for _, task_id in rows if task_id is not None]
    return Requests(asked, any(drain for drain, _ in rows))


def workers(db: sqlite3.Connection) -> Sequence[WorkerInfo]:
    return [worker_of(row) for row in db.execute(WORKERS["workers"])]


def orphans(db: sqlite3.Connection, lanes: Lanes, *, limit: int) -> Sequence[Claim]:
    rows = db.execute(WORKERS["orphans"], (max(0, limit),)).fetchall()
    return [claim_of(row, lanes.lookup(db, row["lane"])) for row in rows]


def _row(db: sqlite3.Connection, task_id: TaskId) -> sqlite3.Row | None:
    row: sqlite3.Row | None = db.execute(TASKS["get"], (safe_text(task_id),)).fetchone()
    return row


def _ahead(db: sqlite3.Connection, task: Task) -> int:
    place = {"queue": task.queue, "rank": task.rank, "id": task.id, "cap": _AHEAD_CAP}
    (number,) = db.execute(TASKS["standing_in_line"], place).fetchone()
    return int(number)


def _gate(db: sqlite3.Connection, name: str | None) -> GateState | None:
    return None if name is None else next(iter(gate_states(db, [name], limit=1)), None)


def _ahead_at_gate(db: sqlite3.Connection, task: Task, gate: str | None) -> int | None:
    if gate is None:
        return None
    place = {"gate": gate, "rank": task.rank, "id": task.id, "cap": _AHEAD_CAP}
    (number,) = db.execute(GATES["standing_before"], place).fetchone()
    return int(number)


def _attempt(row: sqlite3.Row) -> Attempt:
    return Attempt(
        number=row["number"],
        cause=Cause(row["cause"]),
        worker_id=row["worker_id"],
        started_at=as_time(row["started_at"]),
        ended_at=as_time(row["ended_at"]),
        ended=AttemptEnd(row["ended"]),
        charged=bool(row["charged"]),
        error=error_of(row["error"]),
    )


def _last_attempt(task: sqlite3.Row) -> Attempt:
    """The attempt that is still in the task's own row: running, or the one that ended it."""
    is_over = task["place"] == DONE
    return Attempt(
        number=task["attempt"],
        cause=Cause(task["cause"]),
        worker_id=task["worker_id"],
        started_at=as_time(task["started_at"]),
        ended_at=as_time(task["finished_at"]) if is_over else None,
        ended=AttemptEnd(task["ended"]) if is_over else None,
        charged=bool(task["ended_charged"]),
        error=error_of(task["error"]) if is_over else None,
    )


def _event(row: sqlite3.Row) -> Event:
    return Event(
        at=as_time(row["at"]),
        kind=row["kind"],
        attempt=row["attempt"],
        worker_id=row["worker_id"],
        detail=row["detail"],
    )
