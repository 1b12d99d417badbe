"""A batch on a replica set is one transaction: it is in or out, and its submitter hears within
seconds that the server is away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from tests.integration.mongo.proxy import MongoProxy
from tests.kit.servers.mongo import MoodyServer
from tests.kit.servers.proxy import Fate

from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes
from holdfast.core.task import SubmitOutcome
from holdfast.errors import StoreUnavailable
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_tasks, task_id

INSERT = r"insert.*holdfast\.tasks"
COMMIT = "commitTransaction"
WRITE_CONFLICT, NO_SUCH_TRANSACTION = 112, 251
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="module")
def server() -> Iterator[MoodyServer]:
    with MoodyServer() as server:
        yield server


@pytest.fixture
def proxy(server: MoodyServer) -> Iterator[MongoProxy]:
    with MongoProxy(server.start().port) as proxy:
        yield proxy
    server.start().relent()


@pytest.fixture
def url(proxy: MongoProxy) -> str:
    place = f"127.0.0.1:{proxy.port}/submits_{task_id()[-12:]}"
    return f"mongodb://{place}?directConnection=true&serverSelectionTimeoutMS=300"


async def is_up(store: MongoStore) -> bool:
    """Whether both ways to the server are found again: for reads, and for transactions."""
    try:
        await store.commit(Changes(task_id()))
        return await store.now() is not None
    except StoreUnavailable:
        return False


async def test_a_server_that_dies_in_the_middle_is_said_to_be_away_within_seconds(
    server: MoodyServer, proxy: MongoProxy, url: str
) -> None:
    def die(request: str) -> Fate | None:
        if "insert" not in request or "holdfast.tasks" not in request:
            return None
        server.kill9()
        return Fate.LOSE_REQUEST

    batch = new_tasks(3)
    async with MongoStore(url) as store:
        proxy.rule = die
        began = time.monotonic()
        async with asyncio.timeout(10):
            with pytest.raises(StoreUnavailable):
                await store.add(batch, idempotency_window=WINDOW)
        assert time.monotonic() - began < 5

        proxy.rule = lambda _: None
        server.start()
        await eventually(lambda: is_up(store))  # the driver looks for it twice a second
        await store.add(batch, idempotency_window=WINDOW)
        assert await store.count(TaskFilter(), limit=10) == 3


@pytest.mark.parametrize(
    ("command", "code"),
    [("insert", WRITE_CONFLICT), ("commitTransaction", NO_SUCH_TRANSACTION)],
)
async def test_a_batch_that_others_are_in_the_way_of_is_tried_again(
    server: MoodyServer, url: str, command: str, code: int
) -> None:
    async with MongoStore(url) as store:
        server.fail(command, code, times=3)

        answers = await store.add(new_tasks(3), idempotency_window=WINDOW)

        assert {answer.outcome for answer in answers} == {SubmitOutcome.CREATED}
        assert await store.count(TaskFilter(), limit=10) == 3


async def test_a_batch_that_others_are_always_in_the_way_of_is_given_back(
    server: MoodyServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.stores.mongo.atomic._PATIENCE", 0.2)
    async with MongoStore(url) as store:
        server.fail("insert", WRITE_CONFLICT, times=1000)

        async with asyncio.timeout(5):
            with pytest.raises(StoreUnavailable, match="in the way"):
                await store.add(new_tasks(3), idempotency_window=WINDOW)


@pytest.mark.parametrize(
    ("fate", "times"), [(Fate.LOSE_ANSWER, 1), (Fate.LOSE_REQUEST, 3), (Fate.LATE_REQUEST, 2)]
)
async def test_a_commit_without_an_answer_makes_no_second_batch_and_no_half(
    proxy: MongoProxy, url: str, fate: Fate, times: int
) -> None:
    batch = new_tasks(3)
    async with MongoStore(url) as store:
        proxy.ambush(COMMIT, fate, times=times)

        async with asyncio.timeout(10):
            answers = await store.add(batch, idempotency_window=WINDOW)

        assert {answer.outcome for answer in answers} == {SubmitOutcome.CREATED}
        assert await store.count(TaskFilter(), limit=10) == 3
