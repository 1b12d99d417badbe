"""Do the tables that tasks pass through stay small? Counts their size as tasks go through."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import asyncpg

from bench.place import Place
from holdfast.wiring import open_store

BATCH = 1000
SIZES = """
SELECT sum(pg_total_relation_size(c.oid))::bigint
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'holdfast' AND c.relkind = 'r' AND NOT c.relispartition
"""
"""All tables but the two that keep history, which are the partitioned ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bloat:
    """Bytes of the tables that tasks pass through, indexes included."""

    tasks: int
    bytes: int


async def _measure(url: str, stops: tuple[int, ...]) -> list[Bloat]:
    found, through = [], 0
    async with open_store(url) as store:
        place = Place(store)
        await place.enter()
        connection = await asyncpg.connect(url)
        for stop in stops:
            for _ in _batches(stop - through):
                await place.add(BATCH)
                await place.work(BATCH)
            through = stop
            found.append(Bloat(tasks=through, bytes=await connection.fetchval(SIZES)))
        await connection.close()
    return found


def _batches(tasks: int) -> Iterator[int]:
    return iter(range(tasks // BATCH))


def measure(url: str, stops: tuple[int, ...]) -> list[Bloat]:
    """Send tasks through an empty store; the size at each stop."""
    return asyncio.run(_measure(url, stops))
