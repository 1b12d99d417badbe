"""Sweeps up behind the tasks.

Every task leaves dead row versions in the narrow tables. Autovacuum looks once a minute by default;
at tens of thousands of tasks a second that is millions of them, and the tables would grow to hold
as many. So whoever looks for orphans, every few seconds, asks how many there are, and vacuums. That
locks nobody out, and two never do it at once.
"""

from __future__ import annotations

from typing import Final

from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries

MANY: Final = 50_000
"""Dead rows from which a table is worth a visit, if they are also a tenth of the living: the larger
a table and its index, the more a visit costs."""

_PATIENCE: Final = 600.0


async def sweep_up(db: Connection, sql: Queries) -> list[str]:
    """Vacuum the tables that need it; their names."""
    littered = [row[0] for row in await db.fetch(sql["littered"], MANY)]
    for table in littered:
        await db.execute(sql[f"vacuum_{table}"], timeout=_PATIENCE)
    return littered
