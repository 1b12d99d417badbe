"""python -m bench.handing.claimer WAY WORKER LANE: claim as it is told, a line at a time.

An order is a JSON list: how many to a claim, how many in all, and whether to settle them too. The
answer says when it began and ended, and how many it got.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from bench.blocks import blocks
from bench.resp import Line

SQL = blocks(Path(__file__).with_name("handing.sql"))
HAND_OUT = Path(__file__).with_name("hand_out.lua").read_text()
QUEUE, HANDED = "{bench}:queue", "{bench}:handed:"


class Claimer(Protocol):
    async def claim(self, count: int) -> Sequence[Any]:
        """Ids of up to so many tasks, which are the caller's now; as PostgreSQL takes them."""
        ...


class Product:
    """The product's own statement; making claims of its rows is not measured on either side."""

    def __init__(self, db: Any, worker: str) -> None:
        self._db, self._worker = db, worker

    async def claim(self, count: int) -> Sequence[str]:
        rows = await self._db.fetch(SQL["claim"], self._worker, count)
        return [task_id for row in rows[1:] for task_id in row[0]]


class Handed:
    """Ids from Redis, then the rows from PostgreSQL. Ids are bytes all the way."""

    def __init__(self, db: Any, worker: str, lane: int, line: Line, script: bytes) -> None:
        self._db, self._worker, self._lane = db, worker, lane
        self._line, self._command = line, ("EVALSHA", script, 2, QUEUE, HANDED + worker)

    async def claim(self, count: int) -> Sequence[bytes]:
        joined, scores = await self._line.ask(*self._command, count)
        if not joined:
            return []
        ids = [joined[start : start + 16] for start in range(0, len(joined), 16)]
        ranks = [int(rank) for rank in scores.split(b",")]
        rows = await self._db.fetch(SQL["claim_handed"], self._worker, self._lane, ids, ranks)
        return [task_id for row in rows for task_id in row[0]]


async def work(db: Any, claimer: Claimer, worker: str, order: tuple[int, int, bool]) -> list[float]:
    """Do one order; when it began and ended, and how many tasks it got."""
    batch, wanted, settles = order
    got, began = 0, time.time()
    while got < wanted:
        ids = await claimer.claim(min(batch, wanted - got))
        if not ids:
            break
        got += len(ids)
        if settles:
            await db.fetchval(SQL["complete"], worker, ids, [b"1"] * len(ids))
    return [began, time.time(), got]


async def main(way: str, worker: str, lane: int) -> None:
    db = await asyncpg.connect(os.environ["BENCH_POSTGRES"])
    line = await Line.open(os.environ["BENCH_REDIS"])
    claimer: Claimer = Product(db, worker)
    if way == "handed":
        await db.set_type_codec(
            "uuid", encoder=bytes, decoder=bytes, schema="pg_catalog", format="binary"
        )
        script = await line.ask("SCRIPT", "LOAD", HAND_OUT)
        claimer = Handed(db, worker, lane, line, script)
    for order in sys.stdin:
        print(json.dumps(await work(db, claimer, worker, json.loads(order))), flush=True)
    await line.close()
    await db.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
