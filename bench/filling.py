"""Brings a PostgreSQL store to a size in minutes, with statements on our own tables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg

from bench.blocks import blocks
from bench.growth import Size
from bench.place import Place

SQL = blocks(Path(__file__).with_suffix(".sql"))
PIECE = 250_000
LANE = "SELECT holdfast.lane_of('default', '{}', 'normal')"


async def fill(place: Place, url: str, size: Size) -> None:
    """What `growth.build` does, a hundred times as fast. The store must be empty."""
    await place.add(1)
    await place.settle(await place.claim(1))
    connection = await asyncpg.connect(url)
    try:
        lane = await connection.fetchval(LANE)
        now = time.time_ns() // 1_000_000
        # The history is older than what waits, and both are of today, mostly.
        await _insert(connection, SQL["finished"], size.finished, now - 60_000, lane)
        await _insert(connection, SQL["waiting"], size.waiting, now - 30_000, lane)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


async def _insert(connection: Any, query: str, count: int, since: int, lane: int) -> None:
    for first, last in _pieces(count):
        await connection.execute(query, first, last, since, lane, timeout=600)


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, PIECE):
        yield start + 1, min(start + PIECE, count)
