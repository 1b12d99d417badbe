"""Batches on a single server: all or none, however long nobody looks after one that was left, and
whatever the server becomes meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from tests.integration.mongo.proxy import MongoProxy

from holdfast.core.query import TaskFilter
from holdfast.errors import StoreUnavailable
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.factories import WINDOW, new_tasks, task_id
from holdfast.testing.servers.mongo import MongoServer
from holdfast.testing.servers.proxy import Fate

BATCH = 3
DAY = 86_400
SHOWING = r"update.*holdfast\.tasks"
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


class Clock:
    """The host's, some days ahead."""

    def __init__(self, days: int) -> None:
        self._ahead = days * DAY * 1_000_000

    def now_us(self) -> int:
        return time.time_ns() // 1000 + self._ahead


@pytest.fixture(scope="module")
def server() -> Iterator[MongoServer]:
    with MongoServer(standalone=True) as server:
        yield server


@pytest.fixture
def database() -> str:
    return f"batches_{task_id()[-12:]}"


@pytest.fixture
def proxy(server: MongoServer) -> Iterator[MongoProxy]:
    with MongoProxy(server.port) as proxy:
        yield proxy


@pytest.fixture
async def submitter(proxy: MongoProxy, database: str) -> AsyncIterator[MongoStore]:
    url = f"mongodb://127.0.0.1:{proxy.port}/{database}?directConnection=true"
    async with MongoStore(url) as store:
        yield store


async def submit_in_vain(submitter: MongoStore) -> None:
    with pytest.raises(StoreUnavailable):
        await submitter.add(new_tasks(BATCH), idempotency_window=WINDOW)


def restart(server: MongoServer, *, standalone: bool) -> None:
    server.standalone = standalone
    server.restart()


async def shown(store: MongoStore) -> int:
    return await store.count(TaskFilter(), limit=100)


async def test_half_of_one_is_not_forgotten_after_days_in_which_nobody_looked(
    server: MongoServer, proxy: MongoProxy, submitter: MongoStore, database: str
) -> None:
    def disturb(request: str) -> Fate | None:
        """Another writes to one of the tasks meanwhile: it is left for the next round, which
        never comes.
        """
        if "update" not in request or "holdfast.tasks" not in request:
            return None
        if len(disturbed) == 0:
            client: MongoClient[dict[str, Any]] = MongoClient(server.url(database))
            with client:
                tasks = client.get_default_database()["holdfast.tasks"]
                disturbed.append(tasks.update_one({"place": "staged"}, {"$inc": {"version": 1}}))
            return None
        return Fate.LOSE_REQUEST

    disturbed: list[object] = []
    proxy.rule = disturb
    await submit_in_vain(submitter)

    async with MongoStore(server.url(database), clock=Clock(days=2)) as store:
        assert await shown(store) == BATCH - 1
        await store.prune(retention=9 * DAY, dead_letter_retention=9 * DAY, limit=100)
        await store.orphans(limit=1)

        assert await shown(store) == BATCH


async def test_what_says_that_one_counts_is_no_business_of_the_clock_of_the_server(
    server: MongoServer, proxy: MongoProxy, submitter: MongoStore, database: str
) -> None:
    proxy.ambush(SHOWING, Fate.LOSE_REQUEST)
    await submit_in_vain(submitter)

    client: MongoClient[dict[str, Any]] = MongoClient(server.url(database))
    with client:
        batches = client.get_default_database()["holdfast.batches"]
        (record,) = batches.find()
        (dated,) = [i for i in batches.index_information().values() if "expireAfterSeconds" in i]
    assert record["counts"]
    assert dated["key"][0][0] not in record


async def test_one_that_counts_is_shown_though_the_server_is_a_replica_set_by_then(
    server: MongoServer, proxy: MongoProxy, submitter: MongoStore, database: str
) -> None:
    proxy.ambush(SHOWING, Fate.LOSE_REQUEST)
    await submit_in_vain(submitter)
    restart(server, standalone=False)

    try:
        async with MongoStore(server.url(database)) as store:
            assert "transactions" in store.abilities
            await store.orphans(limit=1)

            assert await shown(store) == BATCH
    finally:
        restart(server, standalone=True)
