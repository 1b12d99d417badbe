"""PGQueuer: PostgreSQL by asyncpg, jobs fetched and finished in batches.

Its worker is started by its Python interface, on uvloop: that is its quick way.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from typing import Any

import asyncpg
import pgqueuer
import uvloop
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries

from bench.peers import bodies, driver


async def noop(job: Any) -> None:
    bodies.noop(int(job.payload))


async def stamp(job: Any) -> None:
    bodies.stamp(float(job.payload))


class Queue(driver.Driver):
    """Enqueues by its own queries."""

    async def open(self) -> None:
        self.connection: Any = await asyncpg.connect(driver.POSTGRES)
        self.queries: Any = Queries(AsyncpgDriver(self.connection))
        pool = await asyncpg.create_pool(driver.POSTGRES, min_size=2, max_size=2)
        self.many: Any = Queries(AsyncpgPoolDriver(pool))

    async def install(self) -> None:
        await self.open()
        await self.queries.install()

    async def submit(self, count: int) -> None:
        for number in range(count):
            await self.queries.enqueue("noop", b"%d" % number)

    async def bulk(self, numbers: Sequence[int]) -> None:
        count, payloads = len(numbers), [b"%d" % number for number in numbers]
        await self.many.enqueue(["noop"] * count, payloads, [0] * count)

    async def send(self, sent: float) -> None:
        await self.queries.enqueue("stamp", repr(sent).encode())

    async def finished(self) -> int:
        query = "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"
        return int(await self.connection.fetchval(query))


async def work(batch: int) -> None:
    worker: Any = pgqueuer.PgQueuer(AsyncpgDriver(await asyncpg.connect(driver.POSTGRES)))
    worker.entrypoint("noop")(noop)
    worker.entrypoint("stamp")(stamp)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.shutdown.set)
    await worker.run(batch_size=batch)


if __name__ == "__main__":
    uvloop.run(work(int(sys.argv[1])))
