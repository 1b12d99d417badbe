"""Gives back disk space that the tables needed once.

A table is as large as it ever had to be: for the backlog of one bad night, or because a sweep came
late. Cutting it off at the end needs a lock that nobody shares, for the milliseconds that it takes,
so it is done at rest only: when next to nothing has come in since the last look, and what is there
would fit into a fraction of the pages.
"""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries

SMALL: Final = 64
"""Pages that are not worth asking back."""
VAIN_REST: Final = 600.0
"""Seconds until the next try for a table that would not shrink: a row at its end is still needed,
or an old snapshot sees one."""

_PATIENCE: Final = 600.0


class TableShrinker:
    """Looks at the tables now and then, and remembers what it saw."""

    def __init__(self) -> None:
        self._came_in: dict[str, int] = {}
        self._not_before: dict[str, float] = {}

    async def give_back(self, db: Connection, sql: Queries) -> None:
        """Shrink the tables that are at rest and mostly empty."""
        now = asyncio.get_running_loop().time()
        before, self._came_in = self._came_in, {}
        for table, pages, came_in, is_sparse in await db.fetch(sql["table_sizes"]):
            self._came_in[table] = came_in
            at_rest = table in before and came_in - before[table] < pages
            if pages <= SMALL or not is_sparse or not at_rest:
                continue
            if now >= self._not_before.get(table, now):
                await db.execute(sql[f"shrink_{table}"], timeout=_PATIENCE)
                if await db.fetchval(sql["pages"], table) >= pages:
                    self._not_before[table] = now + VAIN_REST
