"""What operators do to many tasks at once: cancel, requeue, discard; and the pruner's work.

A filter may have to walk the whole table. That is done by a reader (`choose_…`), who brings the ids
of what is to be changed; the writer then looks again whether each of them still matches, and only
walks those.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from holdfast.core.lifecycle import HURRIED, REQUEUEABLE, TERMINAL, UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.task import Reason, State, Task, TaskId
from holdfast.stores.columns import span_us
from holdfast.stores.sqlite.eligible import IdleTask, end
from holdfast.stores.sqlite.filters import narrowed, query
from holdfast.stores.sqlite.gates import Leaving, count_again, first_gate, let_pass
from holdfast.stores.sqlite.queries import (
    FILTERS,
    GATES,
    HISTORY,
    OPERATIONS,
    RECORDS,
    SETTLEMENTS,
    STATS,
    TASKS,
    WORKERS,
    Row,
    Value,
    as_json,
    run_many,
)
from holdfast.stores.sqlite.tally import BLOCKED, DONE, READY, RUNNING, WAITING
from holdfast.stores.sqlite.values import task_of
from holdfast.stores.sqlite.writer import Unit

_MINUTES_KEPT: Final = 120


# Choosing, by a reader


def choose_to_cancel(db: sqlite3.Connection, where: TaskFilter, limit: int) -> list[TaskId]:
    return [row["id"] for row in islice(_to_cancel(db, where), limit)]


def choose_to_requeue(db: sqlite3.Connection, where: TaskFilter, limit: int) -> list[TaskId]:
    return [row["id"] for row in islice(_to_requeue(db, where), limit)]


def choose_to_forget(db: sqlite3.Connection, where: TaskFilter, limit: int) -> list[TaskId]:
    return [row["id"] for row in islice(_to_forget(db, where), limit)]


# Changing, by the writer


def cancel(
    unit: Unit, where: TaskFilter, chosen: Sequence[TaskId], reason: Reason
) -> Sequence[Task]:
    now = unit.now
    found = list(_to_cancel(unit.db, replace(where, ids=tuple(chosen))))
    running = [row["seq"] for row in found if row["place"] == RUNNING]
    idle = [IdleTask(*row[:9]) for row in found if row["place"] != RUNNING]
    if running:
        seqs = as_json(running)
        unit.db.execute(SETTLEMENTS["request_cancel"], (seqs,))
        unit.db.execute(HISTORY["note_all"], {"at": now, "kind": "cancel_requested", "seqs": seqs})
    end(unit, idle, reason, now)
    return _tasks(unit, found)


def requeue(
    unit: Unit,
    where: TaskFilter,
    chosen: Sequence[TaskId],
    *,
    head_starts: Mapping[str, int],
    pace: float | None,
) -> Sequence[Task]:
    now = unit.now
    found = list(_to_requeue(unit.db, replace(where, ids=tuple(chosen))))
    renewed: list[Row] = []
    hurried: list[Row] = []
    touched: set[str] = set()
    for number, row in enumerate(found, start=1):
        due = now + (span_us(number / pace) if pace else 0)
        gate = None if due > now else first_gate(row["lock_key"], row["gates"])
        place = WAITING if due > now else READY if gate is None else BLOCKED
        touched |= set() if gate is None else {gate}
        unit.tally.move(row["lane"], row["place"], place)
        rank = due - head_starts[unit.lanes.lookup(unit.db, row["lane"]).priority]
        if row["state"] in HURRIED:
            hurried.append((row["seq"], place, due, gate, rank))
            is_over = row["state"] == State.RETRYING.value and place != WAITING
            unit.tally.retrying(-1 if is_over else 0)
        else:
            unit.tally.ended(row["state"], row["finished_at"], -1)
            renewed.append((row["seq"], place, due, gate, rank))
    _renew(unit, renewed, now)
    run_many(unit.db, OPERATIONS["hurry"], hurried)
    count_again(unit, [_ended(row) for row in found if row["place"] == DONE])
    let_pass(unit, touched, now)
    return _tasks(unit, found)


def discard(unit: Unit, where: TaskFilter, chosen: Sequence[TaskId]) -> int:
    return _forget(unit, list(_to_forget(unit.db, replace(where, ids=tuple(chosen)))))


def prune(unit: Unit, *, retention: float, dead_letter_retention: float, limit: int) -> int:
    now = unit.now
    oldest = now - span_us(retention)
    ages = {"oldest": oldest, "oldest_dead_letter": now - span_us(dead_letter_retention)}
    gone = _forget(unit, _rows(unit.db, OPERATIONS["old"], ages | {"limit": limit}))
    most = max(limit, 1000)
    unit.db.execute(OPERATIONS["forget_used_up_keys"], {"now": now, "limit": most})
    unit.db.execute(GATES["forget_latches"], {"oldest": oldest, "limit": most})
    unit.db.execute(WORKERS["forget"], (oldest,))
    unit.db.execute(STATS["forget_minutes"], (now // 1_000_000 - _MINUTES_KEPT,))
    return gone


# Steps


def _to_cancel(db: sqlite3.Connection, where: TaskFilter) -> Iterator[sqlite3.Row]:
    for row in _matching(db, "columns_to_cancel", narrowed(where, UNFINISHED)):
        if not row["cancel_requested"]:
            yield row


def _to_requeue(db: sqlite3.Connection, where: TaskFilter) -> Iterator[sqlite3.Row]:
    """Of several that share a unique key only the first can live again."""
    taken: set[tuple[str, str]] = set()
    where = narrowed(where, REQUEUEABLE)
    for row in _matching(db, "columns_to_requeue", where, elsewhere_than=READY):
        key = (row["name"], row["unique_key"])
        if row["taken"] or key in taken:
            continue
        if row["unique_key"] is not None:
            taken.add(key)
        yield row


def _ended(row: sqlite3.Row) -> Leaving:
    awaited = row["id"] if row["awaited"] else None
    failed = row["state"] != State.COMPLETED.value
    return Leaving(DONE, None, None, 0, row["counts"], awaited, failed)


def _to_forget(db: sqlite3.Connection, where: TaskFilter) -> Iterator[sqlite3.Row]:
    return _matching(db, "columns_to_forget", narrowed(where, TERMINAL))


def _matching(
    db: sqlite3.Connection, columns: str, where: TaskFilter, **more: Value
) -> Iterator[sqlite3.Row]:
    """Matching tasks, oldest first, one by one. `more` is for `query`."""
    found = query(db, where, **more)
    sql = " ".join((OPERATIONS[columns], found.text, FILTERS["oldest_first"]))
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    yield from cursor.execute(sql, found.values)


def _renew(unit: Unit, rows: Sequence[Row], now: int) -> None:
    if not rows:
        return
    seqs = as_json([row[0] for row in rows])
    unit.db.execute(HISTORY["keep_last_attempts"], (seqs,))
    unit.db.execute(HISTORY["note_all"], {"at": now, "kind": "requeued", "seqs": seqs})
    run_many(unit.db, OPERATIONS["renew"], rows)


def _forget(unit: Unit, rows: Sequence[sqlite3.Row]) -> int:
    """Drop ended tasks and all that hangs on them."""
    if not rows:
        return 0
    seqs = as_json([row["seq"] for row in rows])
    for row in rows:
        unit.tally.ended(row["state"], row["finished_at"], -1)
    unit.db.execute(HISTORY["forget_attempts"], (seqs,))
    unit.db.execute(HISTORY["forget_events"], (seqs,))
    unit.db.execute(RECORDS["forget_steps"], (seqs,))
    unit.db.execute(OPERATIONS["forget_their_keys"], {"seqs": seqs})
    unit.db.execute(OPERATIONS["forget_tasks"], (seqs,))
    return len(rows)


def _tasks(unit: Unit, rows: Iterable[sqlite3.Row]) -> list[Task]:
    """The tasks of these rows as they are now, oldest first."""
    seqs = as_json([row["seq"] for row in rows])
    found = _rows(unit.db, TASKS["by_seqs"], (seqs,))
    return [task_of(row, unit.lanes.lookup(unit.db, row["lane"])) for row in found]


def _rows(
    db: sqlite3.Connection, sql: str, values: Mapping[str, int] | Sequence[str]
) -> list[sqlite3.Row]:
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(sql, values).fetchall()
