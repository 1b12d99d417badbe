"""A task's history may be as long as it likes: its document stays small."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pymongo import AsyncMongoClient

from holdfast.core.attempt import Claim, Report
from holdfast.core.query import TaskFilter
from holdfast.core.task import TaskId
from holdfast.stores.mongo.history import MOST_BYTES, MOST_ENTRIES
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.factories import new_task, release, success, worker_info

ATTEMPTS = 2 * MOST_ENTRIES + 10
MEBIBYTE = 1 << 20


@pytest.fixture
async def store(fresh_mongo: str) -> AsyncIterator[MongoStore]:
    async with MongoStore(fresh_mongo) as store:
        yield store


@pytest.fixture
async def claim(store: MongoStore) -> Claim:
    await store.register(info := worker_info())
    await store.add([new_task()], idempotency_window=60)
    claimed = await store.claim(info.id, queues=None, capabilities=frozenset(), limit=1)
    return claimed.claims[0]


async def test_every_attempt_of_a_task_that_was_started_very_often_is_known(
    store: MongoStore, claim: Claim, fresh_mongo: str
) -> None:
    first = claim
    for _ in range(ATTEMPTS):
        assert not await store.save([release(claim)])
        claimed = await store.claim(claim.worker_id, queues=None, capabilities=frozenset(), limit=1)
        claim = claimed.claims[0]

    history = await store.history(claim.task_id)

    assert history is not None
    assert [attempt.number for attempt in history.attempts] == list(range(1, ATTEMPTS + 2))
    embedded = await _embedded(fresh_mongo, claim.task_id)
    assert embedded <= MOST_ENTRIES + 1
    assert not await store.save([release(first)]), "a repeat of what a chapter holds"
    assert len(await store.save([success(first)])) == 1


async def test_more_log_lines_than_a_document_can_hold_are_kept_in_order(
    store: MongoStore, claim: Claim
) -> None:
    lines = tuple(f"{number:03}" + "x" * MEBIBYTE for number in range(20))

    refused = await store.report([Report(claim.task_id, 1, claim.worker_id, logs=lines)])

    history = await store.history(claim.task_id)
    assert history is not None
    found = [event.detail for event in history.events if event.kind == "log"]
    assert (list(refused), found) == ([], list(lines))
    assert MOST_BYTES == MEBIBYTE


async def test_the_chapters_of_a_forgotten_task_go_with_it(
    store: MongoStore, claim: Claim, fresh_mongo: str
) -> None:
    lines = tuple(map(str, range(MOST_ENTRIES)))
    for _ in range(3):
        await store.report([Report(claim.task_id, 1, claim.worker_id, logs=lines)])
    await store.save([success(claim)])
    assert await _chapters(fresh_mongo) == 3

    await store.discard(TaskFilter(ids=(claim.task_id,)), limit=1)

    assert await _chapters(fresh_mongo) == 0


async def _embedded(url: str, task_id: TaskId) -> int:
    async with AsyncMongoClient[dict[str, list[object]]](url) as client:
        tasks = client.get_default_database()["holdfast.tasks"]
        found = await tasks.find_one({"_id": task_id})
        assert found is not None
        return len(found["attempts"]) + len(found["events"])


async def _chapters(url: str) -> int:
    async with AsyncMongoClient[dict[str, object]](url) as client:
        return await client.get_default_database()["holdfast.history"].count_documents({})
