"""Looks for what should not be: the questions behind `holdfast doctor`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Final

from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries

_SKEW: Final = 2.0
"""Seconds between this host's clock and the server's that are worth a word."""

_LONG: Final = 300.0
"""Seconds that a transaction may be open before it is worth a word."""


async def problems(
    db: Connection, sql: Queries, *, has_own_clock: bool, long: float = _LONG
) -> list[str]:
    """Everything found, as sentences. Walks all tables."""
    async with db.transaction(isolation="repeatable_read", readonly=True):
        await db.execute(sql["search_path"])
        found = [text async for text in _invariants(db, sql)]
    found += [text async for text in _health(db, sql, long)]
    if not has_own_clock:
        found += [text async for text in _clock(db, sql)]
    return found


async def _invariants(db: Connection, sql: Queries) -> AsyncIterator[str]:
    for task_id, number, places in await db.fetch(sql["places"]):
        yield f"task {task_id} is in {number} places ({places}), not in one"
    for place, task_id in await db.fetch(sql["strangers"]):
        yield f"{place} has a row of task {task_id} that does not belong there"
    for task_id, flags in await db.fetch(sql["flags"]):
        yield f"task {task_id} has flags {flags}, and its other columns disagree"
    for (task_id,) in await db.fetch(sql["unique_keys"]):
        yield f"the unique key of task {task_id} is not where it should be"
    for (task_id,) in await db.fetch(sql["expiries"]):
        yield f"the expiry of task {task_id} is not where it should be"
    for name, held, holders, holder, first in await db.fetch(sql["gates_held"]):
        yield (f"gate {name!r} says that {held} hold it ({holder}), but {holders} do ({first})")
    for name, problem in await db.fetch(sql["gates_open"]):
        yield f"gate {name!r}: {problem}"
    for kind, key, told, found in await db.fetch(sql["counts"]):
        yield f"the tally says {told} for {kind} {key}, but there are {found}"


async def _health(db: Connection, sql: Queries, long: float) -> AsyncIterator[str]:
    fsync, synchronous, pages = await db.fetchrow(sql["settings"]) or ("on", "on", "on")
    if fsync != "on" or pages != "on":
        yield (
            f"fsync is {fsync} and full_page_writes is {pages}: a crash of the server may lose or "
            "damage what was promised"
        )
    if synchronous in ("off", "local"):
        yield (f"synchronous_commit is {synchronous}: a crash may lose what was acknowledged last")
    for pid, name, state, seconds in await db.fetch(sql["pinned"], long):
        yield (
            f"a transaction is open for {seconds / 60:.0f} min (pid {pid}, {name or 'no name'}, "
            f"{state}): dead rows cannot be removed meanwhile. End it, or its program."
        )
    for (slot,) in await db.fetch(sql["slots"]):
        yield f"replication slot {slot} is not read and keeps dead rows. Drop it if it is not used."
    for table, dead, alive in await db.fetch(sql["dead_rows"]):
        yield (
            f"table {table} has {dead:,} dead rows beside {alive:,}: autovacuum does not keep up. "
            "Look for long transactions, and at autovacuum_naptime."
        )
    if missing := await db.fetchval(sql["missing_partitions"]):
        yield (
            f"{missing} partitions of today or tomorrow are missing. A running worker makes them; "
            "so does `holdfast migrate`."
        )


async def _clock(db: Connection, sql: Queries) -> AsyncIterator[str]:
    before = time.time()
    server = await db.fetchval(sql["clock"])
    after = time.time()
    skew = (before + after) / 2 - server
    if abs(skew) > _SKEW + (after - before) / 2:
        yield (
            f"this host's clock is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} the "
            "server's. Tasks go by the server's; ids and logs made here do not."
        )
