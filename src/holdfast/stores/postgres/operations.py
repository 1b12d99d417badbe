"""What operators do to many tasks at once: cancel, requeue, discard; and the pruner's work.

All in one transaction: ids that match are chosen, a function changes those that still can be (the
others were quicker), and if that were fewer than asked for, the next ids follow.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from holdfast.core.lifecycle import REQUEUEABLE, TERMINAL, UNFINISHED, ended_idle_as
from holdfast.core.query import TaskFilter
from holdfast.core.task import Reason, State, Task, TaskId
from holdfast.stores.columns import span_us
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.filters import bind, narrowed, query
from holdfast.stores.postgres.lanes import Lanes
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.reads import tasks

Change = Callable[[list[TaskId], int], Awaitable[Sequence[TaskId]]]
"""Changes those of the ids that it still can, given how many were changed before; says which."""

_AT_A_TIME: Final = 1000


async def cancel(
    db: Connection,
    sql: Queries,
    lanes: Lanes,
    where: TaskFilter,
    *,
    limit: int,
    reason: Reason,
    now: int | None,
) -> tuple[Sequence[Task], str | None]:
    """Also answers whom gates have let pass (`passed_on.py`)."""
    where = narrowed(where, UNFINISHED)
    end = (reason.value, ended_idle_as(reason).value)
    passed: str | None = None

    async def change(ids: list[TaskId], _: int) -> Sequence[TaskId]:
        nonlocal passed
        answer = await db.fetchrow(sql["cancel"], ids, _words(where), now, *end)
        changed, passed = answer or ((), None)
        return changed or ()

    async with db.transaction():
        changed = await _change(db, sql, where, change, "not_asked", limit=limit)
        return await tasks(db, sql, lanes, changed), passed


async def requeue(
    db: Connection,
    sql: Queries,
    lanes: Lanes,
    where: TaskFilter,
    *,
    limit: int,
    head_starts: Mapping[str, int],
    pace: float | None,
    now: int | None,
) -> Sequence[Task]:
    where = narrowed(where, REQUEUEABLE)
    starts = json.dumps({str(priority): start for priority, start in head_starts.items()})
    apart = 1_000_000 / pace if pace else None

    async def change(ids: list[TaskId], number: int) -> Sequence[TaskId]:
        values = (ids, _words(where), starts, apart, number, now)
        return await db.fetchval(sql["requeue"], *values) or ()

    async with db.transaction():
        free = ("key_is_free", "waits_or_ended")
        changed = await _change(db, sql, where, change, *free, limit=limit)
        return await tasks(db, sql, lanes, changed)


async def discard(db: Connection, sql: Queries, where: TaskFilter, *, limit: int) -> int:
    where = narrowed(where, TERMINAL)
    gone = 0

    async def change(ids: list[TaskId], _: int) -> Sequence[TaskId]:
        nonlocal gone
        number = await db.fetchval(sql["discard"], ids, _words(where))
        gone += number
        return ids[:number]

    async with db.transaction():
        await _change(db, sql, where, change, limit=limit)
    return gone


async def prune(
    db: Connection,
    sql: Queries,
    *,
    retention: float,
    dead_letter_retention: float,
    limit: int,
    now: int | None,
) -> int:
    """A day that may go whole goes whole, which is many more than `limit`: then the answer is
    `limit`, "there may be more".
    """
    ages = span_us(retention), span_us(dead_letter_retention)
    if limit > 0:
        await db.fetchval(sql["add_partitions"])
        if await db.fetchval(sql["drop_partition"], *ages, now):
            return limit
    return int(await db.fetchval(sql["prune"], *ages, max(0, limit), now))


async def _change(
    db: Connection, sql: Queries, where: TaskFilter, change: Change, *extra: str, limit: int
) -> list[TaskId]:
    """Change matching tasks, oldest first, until `limit` were changed or none is left."""
    changed: list[TaskId] = []
    last = "00000000-0000-0000-0000-000000000000"
    await db.execute(sql["pin"])
    while len(changed) < limit:
        wanted = min(limit - len(changed), _AT_A_TIME)
        # From the places: a walk over all tasks would pass those that earlier calls have changed.
        found = await query(db, sql, where, *extra, more={"later_than": last}, in_order=False)
        if found is None:
            break
        bound = bind(found, sql["ids_of"], sql["oldest_first"], limit=wanted)
        ids = [row[0] for row in await db.fetch(bound.text, *bound.arguments)]
        if not ids:
            break
        changed += await change(ids, len(changed))
        last = ids[-1]
    return changed


def _words(where: TaskFilter) -> list[str]:
    return [state.value for state in where.states or frozenset[State]()]
