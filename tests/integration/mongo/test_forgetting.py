"""Forgetting takes what it was meant for: a request that was long on its way finds the task as it
is by then, and leaves one that has begun again and ended anew.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from tests.integration.mongo.proxy import MongoProxy
from tests.kit.servers.mongo import MongoServer
from tests.kit.servers.proxy import Fate

from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId, WorkerId
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import HEAD_STARTS, WINDOW, new_task, success, task_id, worker_info

KEPT_FOR = 100.0


class SlowRoad:
    """Holds requests that delete tasks until they may go on."""

    def __init__(self, proxy: MongoProxy) -> None:
        self.is_used = threading.Event()
        self._go_on = threading.Event()
        proxy.rule = self._hold

    def go_on(self) -> None:
        self._go_on.set()

    def _hold(self, request: str) -> Fate | None:
        if "delete" in request and "holdfast.tasks" in request:
            self.is_used.set()
            assert self._go_on.wait(10)
        return None


@pytest.fixture(scope="module")
def server() -> Iterator[MongoServer]:
    with MongoServer() as server:
        yield server


@pytest.fixture
def proxy(server: MongoServer) -> Iterator[MongoProxy]:
    with MongoProxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def database() -> str:
    return f"forgetting_{task_id()[-12:]}"


@pytest.fixture
async def store(server: MongoServer, database: str, clock: FakeClock) -> AsyncIterator[MongoStore]:
    async with MongoStore(server.url(database), clock=clock) as store:
        yield store


@pytest.fixture
async def slow(proxy: MongoProxy, database: str, clock: FakeClock) -> AsyncIterator[MongoStore]:
    url = f"mongodb://127.0.0.1:{proxy.port}/{database}?directConnection=true"
    async with MongoStore(url, clock=clock) as store:
        yield store


async def complete(store: MongoStore, worker: WorkerId) -> None:
    claimed = await store.claim(worker, queues=None, capabilities=frozenset(), limit=1)
    assert not await store.save([success(claim) for claim in claimed.claims])


async def discard(store: MongoStore) -> int:
    return await store.discard(TaskFilter(states=frozenset({State.CANCELLED})), limit=10)


async def prune(store: MongoStore) -> int:
    return await store.prune(retention=KEPT_FOR, dead_letter_retention=KEPT_FOR, limit=10)


@pytest.mark.parametrize("forget", [discard, prune])
async def test_a_task_that_ended_anew_meanwhile_is_kept(
    forget: Callable[[MongoStore], Awaitable[int]],
    store: MongoStore,
    slow: MongoStore,
    proxy: MongoProxy,
    clock: FakeClock,
) -> None:
    info = worker_info()
    await store.register(info)
    (added,) = await store.add([new_task()], idempotency_window=WINDOW)
    await store.cancel(TaskFilter(ids=(added.task_id,)), limit=1)
    clock.advance(2 * KEPT_FOR)
    road = SlowRoad(proxy)

    forgetting = asyncio.ensure_future(forget(slow))
    await asyncio.to_thread(road.is_used.wait, 10)
    await store.requeue(TaskFilter(), limit=1, head_starts=HEAD_STARTS)
    await complete(store, info.id)
    road.go_on()

    assert await forgetting == 0
    await _is_completed(store, added.task_id)


async def _is_completed(store: MongoStore, wanted: TaskId) -> None:
    task = await store.get(wanted)
    history = await store.history(wanted)
    assert task is not None
    assert task.state is State.COMPLETED
    assert history is not None
    assert len(history.attempts) == 1
