"""SAQ: Redis or PostgreSQL, asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import saq

from bench.peers import bodies, driver


async def noop(_ctx: object, *, number: int) -> int:
    return bodies.noop(number)


async def stamp(_ctx: object, *, sent: float) -> None:
    bodies.stamp(sent)


queue: Any = saq.Queue.from_url(driver.POSTGRES or driver.REDIS)
settings: Any = {"queue": queue, "functions": [noop, stamp], "concurrency": 10}
LIFE = 600 if driver.KEEP_RESULTS else -1
"""Seconds that a finished job is kept; -1 drops it at once."""


class Queue(driver.Driver):
    async def open(self) -> None:
        await queue.connect()

    async def submit(self, count: int) -> None:
        for number in range(count):
            await queue.enqueue("noop", number=number, ttl=LIFE)

    async def fill(self, count: int) -> None:
        for start in range(0, count, 50):
            numbers = range(start, min(start + 50, count))
            calls = [queue.enqueue("noop", number=number, ttl=LIFE) for number in numbers]
            await asyncio.gather(*calls)

    async def send(self, sent: float) -> None:
        await queue.enqueue("stamp", sent=sent)

    async def finished(self) -> int:
        if not driver.POSTGRES:
            return len([key async for key in queue.redis.scan_iter("saq:job:*", count=5000)])
        query = "SELECT count(*) FROM saq_jobs WHERE status = 'complete'"
        async with queue.pool.connection() as connection:
            return int((await (await connection.execute(query)).fetchone())[0])
