"""Redis is killed, flushed and paused under load: nothing is lost, nothing runs twice, and locks
stay exclusive, because none of that was ever Redis's business.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from tests.kit.servers.redis import RedisServer

from holdfast import Holdfast
from holdfast.core.task import State
from holdfast.testing.eventually import eventually

PLAIN, LOCKED = 250, 40
KEYS = 3


class Shop:
    """Apps on one store and one Redis; what ran, and who held which lock when."""

    def __init__(self, url: str, redis: RedisServer) -> None:
        self.ran: Counter[int] = Counter()
        self.holders: Counter[str] = Counter()
        self.broken: list[str] = []
        self._url = url
        self._redis = redis

    def app(self) -> Holdfast:
        app = Holdfast(url=self._url, redis_url=self._redis.url, poll="1s", concurrency=4)

        @app.task(name="plain")
        async def plain(n: int) -> int:
            self.ran[n] += 1
            return n

        @app.task(name="locked", lock="{key}")
        async def locked(n: int, key: str) -> int:
            self.holders[key] += 1
            if self.holders[key] > 1:
                self.broken.append(key)
            self.ran[n] += 1
            await asyncio.sleep(0.01)
            self.holders[key] -= 1
            return n

        return app


@pytest.fixture
def shop(fresh_database: str, own_redis: RedisServer) -> Shop:
    return Shop(fresh_database, own_redis)


@asynccontextmanager
async def working(app: Holdfast) -> AsyncIterator[None]:
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def harass(redis: RedisServer) -> None:
    """Every way in which Redis can fail, and as it came back."""
    redis.command("FLUSHALL")
    await asyncio.sleep(0.2)
    redis.pause()
    await asyncio.sleep(0.5)  # longer than Redis has for an answer
    redis.resume()
    await asyncio.sleep(0.5)
    await asyncio.to_thread(redis.kill9)
    await asyncio.sleep(0.4)
    await asyncio.to_thread(redis.start)
    await asyncio.sleep(0.5)
    redis.command("FLUSHALL")


async def submit(caller: Holdfast, first: int, count: int, name: str) -> None:
    chance = random.Random(first)
    for n in range(first, first + count):
        arguments = (n,) if name == "plain" else (n, f"key-{n % KEYS}")
        await caller.registry[name].submit_async(*arguments)
        await asyncio.sleep(chance.uniform(0, 0.02 if name == "plain" else 0.1))


async def test_nothing_is_lost_or_doubled_whatever_becomes_of_redis(
    shop: Shop, own_redis: RedisServer
) -> None:
    async with AsyncExitStack() as stack:
        caller = await stack.enter_async_context(shop.app())
        for _ in range(2):
            app = await stack.enter_async_context(shop.app())
            await stack.enter_async_context(working(app))

        await asyncio.gather(
            submit(caller, 0, PLAIN, "plain"),
            submit(caller, PLAIN, LOCKED, "locked"),
            harass(own_redis),
        )
        await eventually(lambda: len(shop.ran) == PLAIN + LOCKED, within=30)
        await eventually(lambda: is_redis(caller), within=5)

        async def all_done() -> bool:
            states = (await caller.client.stats()).states
            return states[State.COMPLETED] == PLAIN + LOCKED

        await eventually(all_done, within=10)
    assert (set(shop.ran.values()), shop.broken) == ({1}, [])


async def is_redis(app: Holdfast) -> bool:
    return await app.client.dispatcher.mode() == "redis"
