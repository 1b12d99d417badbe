"""Records, as the writer changes them and readers find them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from holdfast.core.record import Changes, Delete, Due, Kept, Name, Put, Record, decided, in_order
from holdfast.core.task import Added, TaskId
from holdfast.stores.columns import in_us, maybe_time, span_us
from holdfast.stores.kill_points import reached
from holdfast.stores.sqlite import gates
from holdfast.stores.sqlite.add import plan, states_of, take_in
from holdfast.stores.sqlite.queries import RECORDS, as_json
from holdfast.stores.sqlite.values import safe_text
from holdfast.stores.sqlite.writer import Unit


def check(unit: Unit, changes: Changes) -> Changes:
    """What to write of these; raises what they clash with."""
    fresh = _decided(unit.db, changes)
    plan(unit.db, changes.tasks, unit.now)
    return fresh


def commit(unit: Unit, changes: Changes, *, is_counted_up: bool = False) -> Sequence[Added]:
    """All of it in the transaction that is open; whoever opened it rolls back if this raises."""
    now = unit.now
    fresh = _decided(unit.db, changes)
    if not is_counted_up:
        gates.count(unit, fresh.ups, now)
    added = take_in(unit, changes.tasks, idempotency_window=changes.idempotency_window)
    gates.await_ends(unit, [latch for latch, _, _ in fresh.ups])
    reached("tasks-added")
    for change in fresh.records:
        _write(unit, change, changes.id)
        reached("record-written")
    touched = gates.count(unit, fresh.downs, now) | gates.set_capacities(unit, fresh.capacities)
    gates.go_through(unit, touched, now)
    return added.answers(unit.db)


def page(
    db: sqlite3.Connection,
    kind: str,
    *,
    limit: int,
    keys: Collection[str] | None,
    group: str | None,
    after: Record | None,
    newest_first: bool,
) -> Sequence[Record]:
    if keys is not None:
        rows = db.execute(RECORDS["named"], (kind, as_json(list(map(safe_text, keys)))))
        found = map(_record, rows)
        return in_order(found, limit=limit, group=group, after=after, newest_first=newest_first)
    order = "newest" if newest_first else "oldest"
    values = {
        "kind": kind,
        "group": None if group is None else safe_text(group),
        "is_later": after is not None,
        "sort": after and after.sort,
        "key": after and after.key,
        "limit": max(0, limit),
    }
    block = f"{order}_by_key" if group is None else f"{order}_in_group"
    return [_record(row) for row in db.execute(RECORDS[block], values)]


def none_due(unit: Unit, kind: str) -> Due | None:
    """The answer if there is nothing to take, found without a write lock."""
    (first,) = unit.db.execute(RECORDS["first_due"], (kind,)).fetchone()
    now = unit.now
    if first is not None and first <= now:
        return None
    return Due((), None if first is None else (first - now) / 1e6)


def take_due(unit: Unit, kind: str, *, limit: int, lease: float) -> Due:
    now = unit.now
    asked = {"kind": kind, "now": now, "until": now + span_us(lease), "limit": max(0, limit)}
    rows = unit.db.execute(RECORDS["due"], asked).fetchall()
    unit.db.execute(RECORDS["take"], asked)
    taken = [_record((*row[:2], row[2] + 1, *row[3:6], asked["until"])) for row in rows]
    (first,) = unit.db.execute(RECORDS["first_due"], (kind,)).fetchone()
    return Due(taken, None if first is None else max(0.0, (first - now) / 1e6))


def journal(db: sqlite3.Connection, task_id: TaskId) -> Mapping[str, bytes]:
    return dict(db.execute(RECORDS["journal"], (safe_text(task_id),)).fetchall())


def _decided(db: sqlite3.Connection, changes: Changes) -> Changes:
    if not (changes.records or changes.counts or changes.capacities):
        return changes
    known = states_of(db, [new.id for new in changes.tasks])
    return decided(changes, _kept(db, changes.names), known)


def _kept(db: sqlite3.Connection, names: Sequence[Name]) -> dict[Name, Kept]:
    rows = db.execute(RECORDS["kept"], (as_json(names),))
    return {(kind, key): Kept(version, by) for kind, key, version, by in rows}


def _write(unit: Unit, change: Put | Delete, by: str) -> None:
    name = (change.kind, safe_text(change.key))
    if isinstance(change, Delete):
        unit.db.execute(RECORDS["delete"], name)
        return
    due = None if change.due_at is None else in_us(change.due_at)
    if due is None and change.due_in is not None:
        due = unit.now + span_us(change.due_in)
    values = (*name, change.document, safe_text(change.group), change.sort, due, by)
    unit.db.execute(RECORDS["put"], values)


def _record(row: Sequence[Any]) -> Record:
    kind, key, version, document, group, sort, due = row
    return Record(kind, key, version, document, group, sort, maybe_time(due))
