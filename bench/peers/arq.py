"""arq: Redis, asyncio. It reads a settings class's own attributes only, hence two whole ones."""

from __future__ import annotations

from typing import Any

from arq import create_pool
from arq.connections import RedisSettings

from bench.peers import bodies, driver

SETTINGS: Any = RedisSettings.from_dsn(driver.REDIS) if driver.REDIS else None
QUIET = {"version": 1, "loggers": {"arq": {"level": "WARNING"}}}


async def noop(_ctx: object, number: int) -> int:
    return bodies.noop(number)


async def stamp(_ctx: object, sent: float) -> None:
    bodies.stamp(sent)


class Wide:
    """Ten times its default of jobs at once."""

    functions = (noop, stamp)
    redis_settings = SETTINGS
    max_jobs = 100
    keep_result = 600 if driver.KEEP_RESULTS else 0


class Usual:
    """Its defaults."""

    functions = (noop, stamp)
    redis_settings = SETTINGS
    keep_result = 0


class Queue(driver.Driver):
    async def open(self) -> None:
        self.pool: Any = await create_pool(SETTINGS)

    async def submit(self, count: int) -> None:
        for number in range(count):
            await self.pool.enqueue_job("noop", number)

    async def send(self, sent: float) -> None:
        await self.pool.enqueue_job("stamp", sent)

    async def finished(self) -> int:
        return len([key async for key in self.pool.scan_iter("arq:result:*", count=5000)])
