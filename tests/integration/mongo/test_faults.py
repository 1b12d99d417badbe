"""A server that says "not now" is asked again: what it says costs time, and neither a result nor an
attempt. The server is told what to say by `failCommand`, as MongoDB's own tests do it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from pymongo import MongoClient
from tests.kit.servers.mongo import MoodyServer

from holdfast import Holdfast, State
from holdfast.core.attempt import Claim
from holdfast.core.query import TaskFilter
from holdfast.errors import StoreError, StoreUnavailable
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.factories import WINDOW, new_task, new_tasks, success, task_id, worker_info

NOT_NOW = {
    43: "CursorNotFound",
    133: "FailedToSatisfyReadPreference",
    175: "QueryPlanKilled",
    217: "IncompleteTransactionHistory",
    237: "CursorKilled",
    264: "TooManyFilesOpen",
    355: "InterruptedDueToStorageChange",
    365: "TemporarilyUnavailable",
    371: "UserWritesBlocked",
    402: "ResourceExhausted",
    433: "AdmissionQueueOverflow",
    10107: "NotWritablePrimary",
    11602: "InterruptedDueToReplStateChange",
}
NO_MAJORITY, STEPPED_DOWN = 64, 189


@pytest.fixture(scope="module")
def server() -> Iterator[MoodyServer]:
    with MoodyServer() as server:
        yield server


@pytest.fixture
def url(server: MoodyServer) -> Iterator[str]:
    yield server.url(f"faults_{task_id()[-12:]}")
    server.relent()


async def claimed(store: MongoStore, **given: Any) -> Claim:
    """One task, running."""
    info = worker_info()
    await store.register(info)
    await store.add([new_task(**given)], idempotency_window=WINDOW)
    claims = await store.claim(info.id, queues=None, capabilities=frozenset(), limit=1)
    return claims.claims[0]


async def test_what_a_server_cannot_do_now_is_done_later(server: MoodyServer, url: str) -> None:
    async with MongoStore(url) as store:
        for code in NOT_NOW:
            claim = await claimed(store)
            server.fail("update", code, times=2)  # the driver may try once more by itself

            with pytest.raises(StoreUnavailable, match="cannot work now"):
                await store.save([success(claim)])

            server.relent()
            assert not await store.save([success(claim)])


@pytest.mark.parametrize("code", [NO_MAJORITY, STEPPED_DOWN])
async def test_what_was_written_without_a_majority_is_asked_for_again_and_written_once(
    server: MoodyServer, url: str, code: int
) -> None:
    async with MongoStore(url) as store:
        claim = await claimed(store)
        server.lose_majority("update", code, times=2)

        with pytest.raises(StoreUnavailable, match="cannot work now"):
            await store.save([success(claim)])
        server.relent()
        assert not await store.save([success(claim)])

        history = await store.history(claim.task_id)
        assert history is not None
        assert [attempt.ended for attempt in history.attempts] == ["completed"]
        assert (await store.stats()).refused == 0


async def test_a_result_is_not_dropped_because_the_server_was_busy(
    server: MoodyServer, url: str
) -> None:
    app = Holdfast(url=url, poll="100ms")

    @app.task
    def work() -> int:
        server.fail("update", 365, times=2)
        return 42

    async with app:
        handle = await work.submit_async()
        await app.run_worker(burst=True)

        task = await handle.task_async()
        history = await handle.history_async()
    assert task.state is State.COMPLETED
    assert [attempt.ended for attempt in history.attempts] == ["completed"]


async def test_a_result_that_does_not_fit_beside_its_payload_is_refused_in_few_words(
    url: str,
) -> None:
    async with MongoStore(url) as store:
        claim = await claimed(store, payload=b"x" * 9_000_000)

        with pytest.raises(StoreError, match="16 MiB") as raised:
            await store.save([success(claim, b"y" * 9_000_000)])

        assert len(str(raised.value)) < 300


async def test_a_list_whose_cursor_is_gone_is_unavailable(server: MoodyServer, url: str) -> None:
    """As after an election between two of its batches."""
    async with MongoStore(url) as store:
        await store.add(new_tasks(150), idempotency_window=WINDOW)
        server.fail("getMore", 43)

        with pytest.raises(StoreUnavailable):
            await store.list(TaskFilter(), limit=1000)


async def test_a_longer_retention_is_told_to_the_server_though_it_was_busy_at_first(
    server: MoodyServer, url: str
) -> None:
    """It would go on removing what is to be kept."""
    client: MongoClient[dict[str, Any]] = MongoClient(url)
    with client:
        async with MongoStore(url) as store:
            server.fail("collMod", 24)
            with suppress(StoreUnavailable):
                await store.prune(retention=1000.0, dead_letter_retention=2000.0, limit=1)

            await store.prune(retention=1000.0, dead_letter_retention=2000.0, limit=1)

        indexes = client.get_default_database()["holdfast.tasks"].index_information()
    day = 86_400
    kept = [indexes[name]["expireAfterSeconds"] - day for name in ("ended_on", "died_on")]
    assert kept == [1000, 2000]
