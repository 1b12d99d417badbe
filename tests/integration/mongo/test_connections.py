"""One store, many event loops: each has its own client and closes it; a fork has none."""

from __future__ import annotations

import asyncio
import gc
import os
import threading

import pytest
from tests.kit.servers.mongo import MongoServer

from holdfast.core.task import State
from holdfast.errors import StoreError, StoreUnavailable
from holdfast.ports.store import Store
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.factories import WINDOW, new_tasks, success, worker_info


async def test_a_store_is_used_from_loops_that_come_and_go(fresh_mongo: str) -> None:
    async with MongoStore(fresh_mongo) as store:
        for _ in range(3):
            await asyncio.to_thread(lambda: asyncio.run(_add(store)))
        await _add(store)

        assert sum((await store.stats()).states.values()) == 8


async def test_closing_reaches_clients_of_other_loops(fresh_mongo: str) -> None:
    store = MongoStore(fresh_mongo)
    await store.open()
    asked, enough = threading.Event(), threading.Event()

    async def stay() -> None:
        await _add(store)
        asked.set()
        await asyncio.to_thread(enough.wait)
        with pytest.raises(StoreError, match="not open"):
            await _add(store)

    thread = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(stay())))
    await asyncio.to_thread(asked.wait)
    await store.close()
    enough.set()
    await thread


async def test_a_store_that_is_not_open_says_so(fresh_mongo: str) -> None:
    store = MongoStore(fresh_mongo)

    with pytest.raises(StoreError, match="is not open in this process"):
        await store.stats()


async def test_a_store_that_was_closed_can_be_opened_again(fresh_mongo: str) -> None:
    store = MongoStore(fresh_mongo)

    for _ in range(2):
        async with store:
            await _add(store)

    async with store:
        assert sum((await store.stats()).states.values()) == 4


async def test_after_a_fork_the_child_is_told_to_open_its_own(fresh_mongo: str) -> None:
    async with MongoStore(fresh_mongo) as store:
        await _add(store)

        child = os.fork()
        if child == 0:
            os._exit(_exit_code(store))
        _, status = await asyncio.to_thread(os.waitpid, child, 0)

        assert os.waitstatus_to_exitcode(status) == 0
        await _add(store)


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # see `own_mongo`
async def test_a_server_that_is_not_there_is_unavailable_within_seconds() -> None:
    store = MongoStore("mongodb://me:word@127.0.0.1:1/db?serverSelectionTimeoutMS=300")

    async with asyncio.timeout(5):
        with pytest.raises(StoreUnavailable) as raised:
            await store.open()

    assert "word" not in str(raised.value)
    assert "127.0.0.1:1" in str(raised.value)
    gc.collect()


async def test_a_store_outlives_its_server(own_mongo: MongoServer) -> None:
    async with MongoStore(own_mongo.url() + "?serverSelectionTimeoutMS=500") as store:
        await _add(store)
        own_mongo.kill9()
        with pytest.raises(StoreUnavailable):
            await store.register(worker_info())

        own_mongo.start()

        await store.register(worker_info())
        assert len(await store.workers()) == 1
        assert sum((await store.stats()).states.values()) == 2


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_url_that_prefers_secondaries_keeps_nobody_from_completing(
    fresh_mongo: str, blocking: bool
) -> None:
    async with MongoStore(f"{fresh_mongo}?readPreference=secondaryPreferred") as store:
        await _add(store)
        info = worker_info()
        await store.register(info)
        found = await store.claim(info.id, queues=None, capabilities=frozenset(), limit=1)
        (claim,) = found.claims

        async with store.transaction(claim, blocking=blocking) as inside:
            await inside.complete(success(claim))

        task = await store.get(claim.task_id)
        assert task is not None
        assert task.state is State.COMPLETED


async def _add(store: Store) -> None:
    await store.add(new_tasks(2), idempotency_window=WINDOW)


def _exit_code(store: Store) -> int:
    """0 if the store refuses to work in this process."""
    try:
        asyncio.new_event_loop().run_until_complete(store.stats())
    except StoreError as error:
        return 0 if "not open in this process" in str(error) else 2
    except BaseException:  # noqa: BLE001 - a child must not run the tests of its parent
        return 3
    return 1
