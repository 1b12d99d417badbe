"""Workers are woken through Redis: none of these could pass by polling, which comes every 30 s."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
from tests.kit.servers.redis import RedisServer

from holdfast import Context, Holdfast, fixed
from holdfast.cli.doctor import _examine
from holdfast.testing.eventually import eventually

SOON = 5.0
POLL = "30s"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shop.db'}"


class Shop:
    """Apps on one store, each of them a process as far as Redis can tell."""

    def __init__(self, url: str, redis: RedisServer) -> None:
        self.url = url
        self.redis = redis
        self.ran: list[str] = []
        self._prefix = f"shop-{os.getpid()}-{id(self)}"

    def app(self, **settings: object) -> Holdfast:
        redis_url = f"{self.redis.url}?prefix={self._prefix}"
        app = Holdfast(url=self.url, redis_url=redis_url, poll=POLL, **settings)  # type: ignore[arg-type] # whatever a test wants
        self._define(app)
        return app

    def asleep(self) -> int:
        return int(str(self.redis.command("ZCARD", f"holdfast:{{{self._prefix}}}:until")))

    @asynccontextmanager
    async def sleeping(self, app: Holdfast) -> AsyncIterator[Holdfast]:
        """Its worker has nothing to do and sleeps."""
        before = self.asleep()
        async with app:
            worker = app.worker()
            running = asyncio.create_task(worker.run())
            try:
                await eventually(lambda: self.asleep() > before)
                yield app
            finally:
                worker.stop()
                await running

    def _define(self, app: Holdfast) -> None:
        name = f"{len(app.settings.capabilities)}:{','.join(app.settings.queues)}"

        @app.task(name="double")
        async def double(n: int) -> int:
            self.ran.append(name)
            return 2 * n

        @app.task(name="flaky", retry=fixed(0.2))
        async def flaky(ctx: Context) -> int:
            if ctx.attempt == 1:
                raise ValueError("the first attempt fails")
            return ctx.attempt

        @app.task(name="locked", lock="one")
        async def locked(seconds: float) -> float:
            await asyncio.sleep(seconds)
            return seconds


@pytest.fixture
def shop(url: str, redis_server: RedisServer) -> Shop:
    return Shop(url, redis_server)


@pytest.fixture
async def caller(shop: Shop) -> AsyncIterator[Holdfast]:
    async with shop.app() as app:
        assert await app.client.dispatcher.mode() == "redis"
        yield app


async def test_a_submit_elsewhere_wakes_a_worker(shop: Shop, caller: Holdfast) -> None:
    async with shop.sleeping(shop.app()):
        handle = await caller.registry["double"].submit_async(4)

        assert await handle.result_async(timeout=SOON) == 8


async def test_one_task_wakes_one_worker_of_many(shop: Shop, caller: Holdfast) -> None:
    apps = [shop.app() for _ in range(4)]
    async with (
        shop.sleeping(apps[0]),
        shop.sleeping(apps[1]),
        shop.sleeping(apps[2]),
        shop.sleeping(apps[3]),
    ):
        # Whoever has just begun to sleep looks again now and then: wait until all lie still.
        await eventually(lambda: all(shop.asleep() == 4 for _ in range(200)), within=60)
        awake: list[int] = []
        watching = asyncio.create_task(_least(shop, awake))
        handle = await caller.registry["double"].submit_async(4)
        await handle.result_async(timeout=SOON)
        await eventually(lambda: shop.asleep() == 4)
        watching.cancel()

        assert min(awake, default=4) >= 3


async def _least(shop: Shop, seen: list[int]) -> None:
    while True:
        seen.append(await asyncio.to_thread(shop.asleep))


async def test_a_delayed_task_and_a_retry_start_when_they_are_due(
    shop: Shop, caller: Holdfast
) -> None:
    async with shop.sleeping(shop.app()):
        began = time.monotonic()
        later = await caller.registry["double"].options(delay=0.4).submit_async(1)
        again = await caller.registry["flaky"].submit_async()

        assert await again.result_async(timeout=SOON) == 2
        assert await later.result_async(timeout=SOON) == 2
        assert time.monotonic() - began >= 0.4


async def test_who_waits_for_a_lock_starts_when_it_is_free(shop: Shop, caller: Holdfast) -> None:
    async with shop.sleeping(shop.app()), shop.sleeping(shop.app()):
        handles = [await caller.registry["locked"].submit_async(0.1) for _ in range(4)]

        began = time.monotonic()
        for handle in handles:
            await handle.result_async(timeout=SOON)
        assert time.monotonic() - began < SOON


async def test_a_resumed_queue_is_looked_at(shop: Shop, caller: Holdfast) -> None:
    async with shop.sleeping(shop.app()):
        await caller.client.pause("default")
        handle = await caller.registry["double"].submit_async(4)
        await eventually(lambda: shop.asleep() == 1)

        await caller.client.resume("default")

        assert await handle.result_async(timeout=SOON) == 8


async def test_a_worker_that_may_take_it_is_among_those_woken(shop: Shop, caller: Holdfast) -> None:
    async with (
        shop.sleeping(shop.app()),  # has slept longer, and cannot take it
        shop.sleeping(shop.app(capabilities=["gpu"])),
    ):
        handle = await caller.registry["double"].options(requires={"gpu"}).submit_async(4)

        assert await handle.result_async(timeout=SOON) == 8
        assert shop.ran == ["1:default"]


async def test_a_server_whose_workers_over_http_have_left_is_not_called(
    shop: Shop, caller: Holdfast
) -> None:
    async with shop.app() as server:
        remote = server.client.remote
        worker = (await remote.register(queues=["default"])).worker_id
        assert not await remote.poll(worker, limit=1, wait=0.2)
        await eventually(lambda: shop.asleep() == 0)
        async with shop.sleeping(shop.app()):
            handle = await caller.registry["double"].submit_async(4)

            assert await handle.result_async(timeout=SOON) == 8
        await remote.close()


async def test_workers_of_other_queues_sleep_on(shop: Shop, caller: Holdfast) -> None:
    async def run(queue: str, sleepers: int) -> None:
        handle = await caller.registry["double"].options(queue=queue).submit_async(4)
        assert await handle.result_async(timeout=SOON) == 8
        await eventually(lambda: shop.asleep() == sleepers)

    async with (
        shop.sleeping(shop.app(queues=["films"])),
        shop.sleeping(shop.app(queues=["mail"])),
    ):
        for queue in ("films", "mail", "films"):
            await run(queue, 2)
        async with shop.sleeping(shop.app(queues=["*"])):
            await run("songs", 3)

    assert shop.ran == ["0:films", "0:mail", "0:films", "0:*"]


async def test_postgresql_neither_notifies_nor_listens(
    redis_server: RedisServer, fresh_database: str
) -> None:
    shop = Shop(fresh_database, redis_server)
    db = await asyncpg.connect(fresh_database)
    calls: list[object] = []
    async with shop.app() as caller, shop.sleeping(shop.app()):
        await db.add_listener("holdfast", lambda *call: calls.append(call))
        listening = await _statements(db)

        for n in range(20):
            handle = await caller.registry["double"].submit_async(n)
            await handle.result_async(timeout=SOON)

        sleepers = await db.fetchval("SELECT count(*) FROM holdfast.sleeper")
    await db.close()
    assert (sleepers, calls) == (0, [])
    assert not [text for text in listening if "LISTEN" in text.upper() or "sleep" in text]


async def test_on_postgresql_a_submit_calls_a_worker_that_is_without_redis(
    redis_server: RedisServer, fresh_database: str
) -> None:
    shop = Shop(fresh_database, redis_server)
    db = await asyncpg.connect(fresh_database)

    async def is_registered() -> bool:
        return bool(await db.fetchval("SELECT count(*) FROM holdfast.sleeper"))

    async with shop.app() as caller, Holdfast(url=fresh_database, poll=POLL) as other:
        shop._define(other)
        worker = other.worker()
        running = asyncio.create_task(worker.run())
        await eventually(is_registered)
        await asyncio.sleep(0.7)  # it has looked for the last time
        handle = await caller.registry["double"].submit_async(4)

        assert await handle.result_async(timeout=SOON) == 8
        worker.stop()
        await running
    await db.close()


async def test_postgresql_is_let_go_of_when_redis_is_back(
    own_redis: RedisServer, fresh_database: str
) -> None:
    """It listened while Redis was away, one more connection for every process."""
    shop = Shop(fresh_database, own_redis)
    db = await asyncpg.connect(fresh_database)
    async with shop.app() as caller, shop.sleeping(shop.app()) as worker:
        dispatchers = [caller.client.dispatcher, worker.client.dispatcher]

        async def are_in_mode(mode: str) -> bool:
            return [await each.mode() for each in dispatchers] == [mode, mode]

        own_redis.kill9()
        await eventually(lambda: are_in_mode("listen"))
        handle = await caller.registry["double"].submit_async(4)
        assert await handle.result_async(timeout=SOON) == 8
        assert await _listeners(db) >= 1, "the worker; whoever only calls may have let go again"
        own_redis.start()
        await eventually(lambda: are_in_mode("redis"))

        async def nobody_listens() -> bool:
            return await _listeners(db) == 0

        await eventually(nobody_listens, within=5)
        handle = await caller.registry["double"].submit_async(4)
        assert await handle.result_async(timeout=SOON) == 8
    await db.close()


async def _listeners(db: asyncpg.Connection) -> int:
    """Connections for wake-ups."""
    words = ("LISTEN", ".sleep(", ".awake(", ".wake(")
    return sum(any(word in text for word in words) for text in await _statements(db))


async def _statements(db: asyncpg.Connection) -> Sequence[str]:
    rows = await db.fetch(
        "SELECT query FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    return [row["query"] for row in rows]


@pytest.mark.parametrize("is_there", [True, False])
async def test_the_doctor_says_whether_workers_are_woken_through_redis(
    tmp_path: Path, redis_server: RedisServer, is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path / 'shop.db'}")
    monkeypatch.setenv(
        "HOLDFAST_REDIS_URL", redis_server.url if is_there else "redis://127.0.0.1:1"
    )
    async with Holdfast():
        pass  # makes the file

    told = [finding.text for finding in await _examine(Holdfast())]

    expected = "woken through Redis" if is_there else "Redis cannot be reached"
    assert any(expected in text for text in told), told


async def test_a_submit_in_somebodys_transaction_is_called_for_when_it_may_be_there(
    redis_server: RedisServer, fresh_database: str
) -> None:
    shop = Shop(fresh_database, redis_server)
    db = await asyncpg.connect(fresh_database)
    async with shop.app() as caller, shop.sleeping(shop.app()):
        async with db.transaction():
            handle = await caller.registry["double"].options(connection=db).submit_async(4)
            await asyncio.sleep(0.1)

        assert await handle.result_async(timeout=SOON) == 8
    await db.close()


async def test_a_worker_on_mongodb_is_woken_through_redis(
    redis_server: RedisServer, fresh_mongo: str
) -> None:
    shop = Shop(fresh_mongo, redis_server)
    async with shop.app() as caller, shop.sleeping(shop.app()):
        handle = await caller.registry["double"].submit_async(4)

        assert await handle.result_async(timeout=2 * SOON) == 8
