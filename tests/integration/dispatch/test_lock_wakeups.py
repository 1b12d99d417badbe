"""A lock that is let go in one queue wakes the worker of another, where the next in line waits.

Nobody polls here for a minute: only a wake-up explains a task that starts in time. Each app is a
process as far as its store and dispatcher can tell. What was when is read from the store, by its
own clock.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import pytest
from tests.kit.servers.redis import RedisServer

from holdfast import Context, Handle, Holdfast, State, fixed
from holdfast.core.task import TaskError
from holdfast.dispatch import sleepers
from holdfast.remote import RemoteResult, ResultStatus
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import worker_info
from holdfast.worker.worker import Worker

SOON = 2.0
"""Seconds from the release of a lock to the start of the next in line."""
POLL = "60s"
LOOKS = (0.005, 0.02, 0.1)
FAST_ASLEEP = 0.15
"""Seconds; a process on PostgreSQL that has just gone to sleep looks again after those above."""
DELAY = 0.4

WAYS = {
    "sqlite-sockets": "sockets",
    "postgres-notify": "listen",
    "postgres-redis": "redis",
    "mongo-streams": "stream",
}


class Street:
    """Shops on one store, each of them a process, and what they sell."""

    def __init__(self, way: str, url: str, redis_url: str | None) -> None:
        self.mode = WAYS[way]
        self.url = url
        self.redis_url = redis_url
        self.go = asyncio.Event()
        self.held = asyncio.Event()

    def app(self, **settings: object) -> Holdfast:
        app = Holdfast(url=self.url, redis_url=self.redis_url, poll=POLL, **settings)  # type: ignore[arg-type] # whatever a test wants
        self._define(app)
        return app

    @asynccontextmanager
    async def opened(self, **settings: object) -> AsyncIterator[Holdfast]:
        """An app that wakes others in the way that is meant."""
        async with self.app(**settings) as app:
            assert await app.client.dispatcher.mode() == self.mode
            yield app

    @asynccontextmanager
    async def working(self, **settings: object) -> AsyncIterator[Worker]:
        """A worker in an app of its own."""
        async with self.opened(**settings) as app:
            worker = app.worker()
            running = asyncio.create_task(worker.run())
            try:
                yield worker
            finally:
                self.go.set()
                worker.stop()
                await running

    def _define(self, app: Holdfast) -> None:
        @app.task(name="hold", queue="a", lock="k")
        async def hold() -> None:
            self.held.set()
            await self.go.wait()

        @app.task(name="book", queue="a", lock="k")
        async def book(ctx: Context) -> None:
            self.held.set()
            await self.go.wait()
            async with ctx.transaction():
                ctx.complete(None)

        @app.task(name="fail", queue="a", lock="k", max_retries=1, retry=fixed(60))
        async def fail() -> None:
            self.held.set()
            await self.go.wait()
            raise ValueError("no such row")

        @app.task(name="wait", queue="b", lock="k")
        async def wait() -> str:
            return "done"

        @app.task(name="later", queue="b")
        async def later() -> str:
            return "done"

        @app.task(name="again", queue="b", max_retries=1, retry=fixed(DELAY))
        async def again() -> str:
            return "done"

        @app.task(name="order", queue="a")
        async def order() -> None:
            await app.registry["later"].options(delay=DELAY).submit_async()


@pytest.fixture(params=WAYS)
def street(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Street:
    monkeypatch.setattr(sleepers, "REPEATS", LOOKS)  # the last, after 0.5 s, is for slow commits
    store, _, way = str(request.param).partition("-")
    if store == "sqlite":
        url = f"sqlite:///{tmp_path / 'street.db'}"
    else:
        kind = "fresh_mongo" if store == "mongo" else "fresh_database"
        url = request.getfixturevalue(kind)
    redis_url = None
    if way == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        redis_url = f"{server.url}?prefix=street-{os.getpid()}-{secrets.token_hex(4)}"
    return Street(request.param, url, redis_url)


@pytest.fixture
async def caller(street: Street) -> AsyncIterator[Holdfast]:
    async with street.opened() as app:
        yield app


@pytest.fixture
async def sleeper(street: Street) -> AsyncIterator[Worker]:
    """Serves the queue of those who wait."""
    async with street.working(queues=["b"]) as worker:
        yield worker


async def fast_asleep(worker: Worker) -> None:
    """It has looked for the last time before it relies on being called."""
    since, nap = time.monotonic(), object()

    def sleeps() -> bool:
        nonlocal since, nap
        parts = worker._parts
        now = parts and parts.feeder._napper._nap
        if now is None or now is not nap:
            since, nap = time.monotonic(), now or object()
        return time.monotonic() - since > FAST_ASLEEP

    await eventually(sleeps, within=20)


async def in_line(caller: Holdfast, worker: Worker, **options: object) -> Handle[str]:
    """Somebody waits for the lock, in the other queue, and its worker sleeps."""
    waiter = await caller.registry["wait"].options(**options).submit_async()  # type: ignore[arg-type] # whatever a test wants
    assert await waiter.status_async() is State.BLOCKED
    await fast_asleep(worker)
    return waiter


async def release_of(holder: Handle[object]) -> datetime:
    history = await holder.history_async()
    assert history.attempts[-1].ended_at is not None
    return history.attempts[-1].ended_at


async def starts_soon_after(released: datetime, waiter: Handle[str]) -> None:
    assert await waiter.result_async(timeout=2 * SOON) == "done"
    (attempt,) = (await waiter.history_async()).attempts
    assert 0 <= (attempt.started_at - released).total_seconds() < SOON


async def test_when_the_holder_ends(street: Street, caller: Holdfast, sleeper: Worker) -> None:
    """Completed, completed in its own transaction, and failed with a retry much later."""
    assert "transactions" in caller.client.store.abilities
    async with street.working(queues=["a"]):
        for how in ("hold", "book", "fail"):
            street.held.clear()
            street.go.clear()
            holder = await caller.registry[how].submit_async()
            await asyncio.wait_for(street.held.wait(), 10)
            waiter = await in_line(caller, sleeper)

            street.go.set()

            await waiter.result_async(timeout=2 * SOON)
            await starts_soon_after(await release_of(holder), waiter)


async def test_when_the_holders_worker_leaves_at_once(
    street: Street, caller: Holdfast, sleeper: Worker
) -> None:
    """Its last call is made before it closes."""
    async with street.working(queues=["a"]) as leaving:
        holder = await caller.registry["hold"].submit_async()
        await asyncio.wait_for(street.held.wait(), 10)
        waiter = await in_line(caller, sleeper)
        leaving.stop()
        street.go.set()

    await starts_soon_after(await release_of(holder), waiter)


async def test_when_a_holder_that_has_not_started_is_cancelled(
    street: Street, caller: Holdfast, sleeper: Worker
) -> None:
    """By its handle, and with all others of its queue."""
    for many in (False, True):
        holder = await caller.registry["hold"].submit_async()
        waiter = await in_line(caller, sleeper)

        if many:
            assert await caller.client.cancel_many(queue="a") == 1
        else:
            await holder.cancel_async()

        ended = await caller.client.get(holder.id)
        assert ended.finished_at is not None
        await starts_soon_after(ended.finished_at, waiter)


async def test_when_the_holders_worker_was_killed(street: Street, caller: Holdfast) -> None:
    """A third process rescues its task, which then stands behind one that is more urgent."""
    holder = await caller.registry["hold"].submit_async()
    killed = worker_info()
    await caller.client.store.register(killed)
    claimed = await caller.client.store.claim(
        killed.id, queues=["a"], capabilities=frozenset(), limit=1
    )
    assert [claim.task_id for claim in claimed.claims] == [holder.id]

    async with street.working(queues=["b"], heartbeat="100ms") as sleeper:
        waiter = await in_line(caller, sleeper, priority="high")
        async with street.opened(lease="1s", sweep="100ms") as server:
            maintaining = asyncio.create_task(server.maintain())
            await waiter.result_async(timeout=20)
            maintaining.cancel()
            await asyncio.wait({maintaining})

    await starts_soon_after(await release_of(holder), waiter)


async def test_when_a_worker_over_http_hands_in_its_result(
    street: Street, caller: Holdfast, sleeper: Worker
) -> None:
    async with serving(street) as server:
        remote = server.client.remote
        worker = (await remote.register(queues=["a"])).worker_id
        holder = await caller.registry["hold"].submit_async()
        (claim,) = await remote.poll(worker, limit=1, wait=5.0)
        waiter = await in_line(caller, sleeper)

        done = RemoteResult(
            task_id=claim.task_id, attempt=claim.attempt, status=ResultStatus.COMPLETED
        )
        await remote.results(worker, [done])

        await starts_soon_after(await release_of(holder), waiter)


async def test_when_a_worker_over_http_waits_for_the_next(street: Street, caller: Holdfast) -> None:
    async with street.working(queues=["a"]), serving(street) as server:
        remote = server.client.remote
        worker = (await remote.register(queues=["b"])).worker_id
        holder = await caller.registry["hold"].submit_async()
        await asyncio.wait_for(street.held.wait(), 10)
        waiter = await caller.registry["wait"].submit_async()
        polling = asyncio.create_task(remote.poll(worker, limit=1))
        await eventually(
            lambda: any(one._napper.is_asleep for one in remote._polls._waiting.values())
        )
        await asyncio.sleep(2 * FAST_ASLEEP)  # on PostgreSQL a sleeper looks again for a while

        street.go.set()

        (claim,) = await asyncio.wait_for(polling, 2 * SOON)
        assert claim.task_id == waiter.id
        started = (await caller.client.get(waiter.id)).started_at
        assert started is not None
        assert (started - await release_of(holder)).total_seconds() < SOON


async def test_a_delayed_task_for_another_queue_starts_when_it_is_due(
    street: Street, caller: Holdfast, sleeper: Worker
) -> None:
    async with street.working(queues=["a"]):
        await fast_asleep(sleeper)

        await caller.registry["order"].submit_async()

        async def done() -> bool:
            page = await caller.client.list(name="later", state="completed")
            return bool(page.tasks)

        await eventually(done, within=2 * SOON)
    (task,) = (await caller.client.list(name="later")).tasks
    assert task.started_at is not None
    assert 0 <= (task.started_at - task.run_at).total_seconds() < SOON


async def test_a_retry_after_a_worker_over_http_starts_when_it_is_due(
    street: Street, caller: Holdfast
) -> None:
    async with serving(street) as server:
        remote = server.client.remote
        worker = (await remote.register(queues=["b"])).worker_id
        task = await caller.registry["again"].submit_async()
        (claim,) = await remote.poll(worker, limit=1, wait=5.0)
        failed = RemoteResult(
            task_id=claim.task_id,
            attempt=claim.attempt,
            status=ResultStatus.FAILED,
            error=TaskError(type="ValueError", message="not yet"),
        )
        async with street.working(queues=["b"]) as sleeper:
            await fast_asleep(sleeper)

            await remote.results(worker, [failed])

            assert await task.result_async(timeout=15) == "done"
    picture = await caller.client.get(task.id)
    assert picture.started_at is not None
    assert 0 <= (picture.started_at - picture.run_at).total_seconds() < SOON


@asynccontextmanager
async def serving(street: Street) -> AsyncIterator[Holdfast]:
    """A server process for workers over HTTP, without HTTP."""
    async with street.opened() as server:
        try:
            yield server
        finally:
            await server.client.remote.close()
