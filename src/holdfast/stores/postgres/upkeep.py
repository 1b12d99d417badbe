"""Sweeps up behind the tasks.

Every task leaves dead row versions in the narrow tables. Autovacuum looks once a minute by default;
at tens of thousands of tasks a second that is millions of them, and the tables would grow to hold
as many. So we vacuum ourselves, which locks nobody out, and two never do it at once:

- who settles tasks counts them, and sweeps as soon as so many have passed (`Sweeper`); the numbers
  that they have left in `tally`, a few for each batch, are added up by the way;
- whoever looks for orphans, every few seconds, asks the server how many dead rows there are
  (`sweep_up`), for all that the count does not see.
"""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.asyncio_tools.cancel import end
from holdfast.errors import HoldfastError
from holdfast.logs import EventLog
from holdfast.stores.postgres.connections import Connection, Connections
from holdfast.stores.postgres.queries import Queries

log = EventLog(__name__)

MANY: Final = 50_000
"""Dead rows from which a table is worth a visit, if they are also a tenth of the living: the larger
a table and its index, the more a visit costs."""
REST: Final = 9
"""A sweep that was vain, because an old snapshot still sees the dead, rests for so many times as
long as it took."""

_PATIENCE: Final = 600.0


async def sweep_up(db: Connection, sql: Queries) -> list[str]:
    """Vacuum the tables that need it, by the server's counters; their names."""
    return await _vacuum(db, sql, [row[0] for row in await db.fetch(sql["littered"], MANY)])


class Sweeper:
    """Sweeps after the tasks that this process has settled, in the background."""

    def __init__(self, connections: Connections, sql: Queries) -> None:
        self._connections = connections
        self._sql = sql
        self._passed = 0
        self._look_at = MANY
        self._not_before = 0.0
        self._sweep: asyncio.Task[None] | None = None

    def passed(self, tasks: int) -> None:
        """So many more have been settled."""
        self._passed += tasks
        if self._passed >= self._look_at and self._sweep is None:
            loop = asyncio.get_running_loop()
            if loop.time() >= self._not_before:
                self._sweep = loop.create_task(self._work(loop))

    async def close(self) -> None:
        sweep = self._sweep
        if sweep is not None and sweep.get_loop() is asyncio.get_running_loop():
            await end([sweep])

    async def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        began, passed, left = loop.time(), self._passed, 0
        try:
            swept, left = await self._connections.do(lambda db: _sweep_after(db, self._sql, passed))
            if swept:
                self._passed -= passed
                self._look_at = MANY
            else:  # too little for tables so large
                self._look_at = passed + MANY
        except HoldfastError as error:
            log.debug("store.sweep_failed", error=str(error))
            left = passed
        finally:
            now = loop.time()
            self._not_before = now + (REST if left > MANY else 1) * (now - began)
            self._sweep = None


async def _sweep_after(db: Connection, sql: Queries, passed: int) -> tuple[list[str], int]:
    """The tables that were swept, and how many dead rows had to be left in them."""
    tables = [row[0] for row in await db.fetch(sql["worth_it"], passed)]
    if tables:
        await db.execute(sql["fold_tally"])
        tables.append("tally")
    await _vacuum(db, sql, tables)
    return tables, await db.fetchval(sql["left_dead"])


async def _vacuum(db: Connection, sql: Queries, tables: list[str]) -> list[str]:
    for table in tables:
        await db.execute(sql[f"vacuum_{table}"], timeout=_PATIENCE)
    return tables
