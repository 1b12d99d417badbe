"""Records, the journal, and commits of several things.

What is there is locked, `core.record.decided` decides, and what it decided is written. A record
that two callers make at the same time is made by one of them: the other meets the primary key, and
begins anew with what it finds then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import asyncpg

from holdfast.core.attempt import CLASHES, Refusal, Settlement, clashed
from holdfast.core.ids import is_task_id
from holdfast.core.lifecycle import cancelled_instead
from holdfast.core.record import Changes, Delete, Due, Kept, Name, Put, Record, decided, in_order
from holdfast.core.task import Added, TaskId
from holdfast.stores.columns import in_us, maybe_time, span_us
from holdfast.stores.kill_points import reached
from holdfast.stores.postgres import settlements
from holdfast.stores.postgres.add import add
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.faults import IDEMPOTENCY_CONFLICT, explain
from holdfast.stores.postgres.lanes import Lanes
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.values import safe_text

_TRIES: Final = 8


async def commit(
    db: Connection, sql: Queries, lanes: Lanes, changes: Changes, now: int | None
) -> tuple[Sequence[Added], str | None]:
    """Also answers whom gates have let pass (`passed_on.py`)."""
    await lanes.intern(db, changes.tasks)
    for left in reversed(range(_TRIES)):
        try:
            async with db.transaction():
                fresh = await _decided(db, sql, [changes])
                await _count_up(db, sql, fresh)
                answer = await _write(db, sql, lanes, fresh, now)
                reached("written")
            reached("committed")
            return answer
        except asyncpg.UniqueViolationError:
            if not left:
                raise
    raise AssertionError


async def save(
    db: Connection, sql: Queries, lanes: Lanes, settled: Sequence[Settlement], now: int | None
) -> tuple[Sequence[Refusal], str | None]:
    """`settlements.save`, and what they bring along."""
    bringing = [s for s in settled if s.also is not None or s.behind is not None]
    if not bringing:
        return await settlements.save(db, sql, settled, now)
    held = await _held(db, sql, bringing)
    late = [s for s in settled if s.task_id not in held or (s.also is None is s.behind)]
    refused, passed = await settlements.save(db, sql, late, now) if late else ((), None)
    mine = [s for s in bringing if s.task_id in held]
    await lanes.intern(db, [new for s in mine if s.also for new in s.also.tasks])
    answers = [(refused, passed)]
    try:
        return _joined([*answers, await _save_together(db, sql, lanes, mine, now)])
    except (*CLASHES, asyncpg.PostgresError) as error:
        if not _is_clash(error):
            raise
    for one in mine:
        try:
            answers.append(await _save_together(db, sql, lanes, [one], now))
        except (*CLASHES, asyncpg.PostgresError) as error:
            if not _is_clash(error):
                raise
            answers.append(([clashed(one, explain(error, ""))], None))  # type: ignore[arg-type]
    return _joined(answers)


async def page(
    db: Connection,
    sql: Queries,
    kind: str,
    *,
    limit: int,
    keys: Collection[str] | None,
    group: str | None,
    after: Record | None,
    newest_first: bool,
) -> Sequence[Record]:
    if keys is not None:
        rows = await db.fetch(sql["named_records"], kind, list(map(safe_text, keys)))
        found = map(_record, rows)
        return in_order(found, limit=limit, group=group, after=after, newest_first=newest_first)
    order = "newest" if newest_first else "oldest"
    edge = (None, None) if after is None else (after.sort, after.key)
    if group is None:
        rows = await db.fetch(sql[f"{order}_records"], kind, edge[1], max(0, limit))
    else:
        asked = (kind, safe_text(group), *edge, max(0, limit))
        rows = await db.fetch(sql[f"{order}_records_in_group"], *asked)
    return [_record(row) for row in rows]


async def take_due(
    db: Connection, sql: Queries, kind: str, *, limit: int, lease: float, now: int | None
) -> Due:
    rows = await db.fetch(sql["take_due_records"], kind, max(0, limit), span_us(lease), now)
    first = await db.fetchval(sql["next_due_record"], kind, now)
    next_due = None if first is None else max(0.0, first / 1e6)
    return Due([_record(row) for row in rows], next_due)


async def journal(db: Connection, sql: Queries, task_id: TaskId) -> Mapping[str, bytes]:
    if not is_task_id(task_id):
        return {}
    return {row["step"]: row["result"] for row in await db.fetch(sql["journal"], task_id)}


async def _save_together(
    db: Connection, sql: Queries, lanes: Lanes, mine: Sequence[Settlement], now: int | None
) -> tuple[Sequence[Refusal], str | None]:
    async with db.transaction():
        held = await _held(db, sql, mine)
        mine = [cancelled_instead(s) if held.get(s.task_id) else s for s in mine]
        rightful = [s for s in mine if s.task_id in held]
        fresh = await _decided(db, sql, [s.also for s in rightful if s.also is not None])
        await _count_up(db, sql, fresh, [s.behind for s in rightful])  # before their own ends count
        await settlements.stand_behind(db, sql, rightful)
        refused, passed = await settlements.save(db, sql, mine, now)
        reached("end-written")
        _, more = await _write(db, sql, lanes, fresh, now)
        reached("written")
    reached("committed")
    return refused, more or passed


async def _write(
    db: Connection, sql: Queries, lanes: Lanes, several: Sequence[_Decided], now: int | None
) -> tuple[list[Added], str | None]:
    """Write all of these in the transaction that is open; latches were counted up before."""
    answers: list[Added] = []
    passed = None
    if tasks := [new for each in several for new in each.changes.tasks]:
        window = several[0].changes.idempotency_window
        answers, passed = await add(db, sql, lanes, tasks, window=window, now=now)
        reached("tasks-added")
    if any(each.changes.records for each in several):
        await _write_records(db, sql, several, now)
    downs = [count for each in several for count in each.changes.downs]
    capacities = [word for each in several for word in each.changes.capacities]
    if downs or capacities:
        latches, numbers, failed = _columns(downs, 3)
        gates = _columns(capacities, 2)
        less = [-number for number in numbers]
        passed = await db.fetchval(sql["change_gates"], latches, less, failed, *gates, now)
    return answers, passed


async def _count_up(
    db: Connection, sql: Queries, several: Sequence[_Decided], behind: Sequence[str | None] = ()
) -> None:
    """Latches that somebody is to stand `behind` are closed by that."""
    if ups := [count for each in several for count in each.changes.ups]:
        columns = _columns(ups, 3)
        if again := sorted(set(columns[0]).intersection(behind)):
            await db.execute(sql["close_latches"], again)
        await db.execute(sql["count_up"], *columns)


def _columns(rows: Sequence[tuple[Any, ...]], number: int) -> list[list[Any]]:
    return [[row[n] for row in rows] for n in range(number)]


class _Decided(NamedTuple):
    """What to write of some changes, and the records that were found, and are locked."""

    changes: Changes
    found: Mapping[Name, Kept]


async def _decided(db: Connection, sql: Queries, several: Sequence[Changes]) -> list[_Decided]:
    found: dict[Name, Kept] = {}
    fresh = []
    for changes in several:
        if changes.records:
            kinds, keys = zip(*changes.names, strict=True)
            rows = await db.fetch(sql["hold_records"], kinds, keys)
            found |= {(kind, key): Kept(version, by) for kind, key, version, by in rows}
        ids = [new.id for new in changes.tasks]
        is_more = changes.records or changes.counts or changes.capacities
        asks = ids and is_more
        known = {row[0] for row in await db.fetch(sql["known_tasks"], ids)} if asks else ()
        fresh.append(_Decided(decided(changes, found, known), found))
    return fresh


async def _write_records(
    db: Connection, sql: Queries, several: Sequence[_Decided], now: int | None
) -> None:
    """One that was not there is inserted and nothing else: who made it meanwhile has won."""
    inserts: list[tuple[Any, ...]] = []
    updates: list[tuple[Any, ...]] = []
    deletes: list[tuple[Any, ...]] = []
    for each in several:
        for change in each.changes.records:
            name = (change.kind, safe_text(change.key))
            if isinstance(change, Delete):
                deletes.append(name)
            else:
                into = updates if name in each.found else inserts
                into.append((*name, *_kept(change), each.changes.id))
    if deletes:
        await db.execute(sql["delete_records"], *_columns(deletes, 2))
        reached("record-written")
    for statement, rows in (("insert_records", inserts), ("update_records", updates)):
        if rows:
            await db.execute(sql[statement], *_columns(sorted(rows, key=_name), 8), now)
            reached("record-written")


def _name(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[:2]


def _kept(put: Put) -> tuple[Any, ...]:
    due_at = None if put.due_at is None else in_us(put.due_at)
    due_in = None if put.due_in is None else span_us(put.due_in)
    return put.document, safe_text(put.group), put.sort, due_at, due_in


async def _held(db: Connection, sql: Queries, settled: Sequence[Settlement]) -> dict[str, bool]:
    """The tasks whose lease holds: what the others bring along is of no account. And whether they
    were asked to stop.
    """
    known = [s for s in settled if is_task_id(s.task_id)]
    columns = zip(*((s.task_id, s.attempt, s.worker_id) for s in known), strict=True)
    ids, attempts, workers = columns if known else ((), (), ())
    return dict(map(tuple, await db.fetch(sql["held"], ids, attempts, workers)))


def _is_clash(error: BaseException) -> bool:
    if isinstance(error, asyncpg.UniqueViolationError):
        return True  # somebody made the same record: each on its own finds out
    return isinstance(error, CLASHES) or getattr(error, "sqlstate", None) == IDEMPOTENCY_CONFLICT


def _joined(
    answers: Sequence[tuple[Sequence[Refusal], str | None]],
) -> tuple[Sequence[Refusal], str | None]:
    passed = " ".join(text for _, text in answers if text) or None
    return [refusal for refused, _ in answers for refusal in refused], passed


def _record(row: asyncpg.Record) -> Record:
    kind, key, version, document, group, sort, due = row
    return Record(kind, key, version, document, group, sort, maybe_time(due))
