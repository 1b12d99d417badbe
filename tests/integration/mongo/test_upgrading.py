"""A database of the schema before this one opens after `migrate`, with what deaths left in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase

from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId
from holdfast.errors import SchemaMismatch
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import WINDOW, new_task, worker_info

Database = AsyncDatabase[dict[str, Any]]


@pytest.fixture
async def database(fresh_mongo: str) -> AsyncIterator[Database]:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(fresh_mongo)
    async with client:
        yield client.get_default_database()


async def stage(database: Database, task_id: TaskId, batch: str) -> None:
    """Make a task one of a batch on a single server, as nobody was to see it yet."""
    marks = dict.fromkeys(("ready", "ready_lane", "waits_for", "order", "holds"), "")
    change = {"$set": {"place": "staged", "batch": batch, "staged_at": 1}, "$unset": marks}
    await database["holdfast.tasks"].update_one({"_id": task_id}, change)


async def test_what_deaths_left_behind_is_finished_by_migrate(
    fresh_mongo: str, database: Database
) -> None:
    clock = FakeClock()
    keys = ("k", "k", None, "l", None)
    tasks = holder, waiting, counted, locked, given_up = [new_task(lock=key) for key in keys]
    async with MongoStore(fresh_mongo, clock=clock) as store:
        await store.add(tasks, idempotency_window=WINDOW)
        await store.cancel(TaskFilter(ids=(holder.id,)), limit=1)
    await stage(database, counted.id, "yes")
    await stage(database, locked.id, "yes")
    await stage(database, given_up.id, "no")
    await database["holdfast.batches"].insert_one({"_id": "yes", "counts": True})
    await database["holdfast.locks"].drop()
    kept = database["holdfast.tasks"]
    ready = await kept.find_one({"_id": waiting.id})
    assert ready is not None
    freed = {"place": "blocked", "state": "blocked", "waits_for": "k", "order": ready["ready"][:24]}
    marks = {"ready": "", "ready_lane": "", "holds": ""}
    await kept.update_one({"_id": waiting.id}, {"$set": freed, "$unset": marks})
    await database["holdfast.state"].update_one({"_id": BOARD}, {"$set": {"schema": 1}})
    store = MongoStore(fresh_mongo, clock=clock)

    with pytest.raises(SchemaMismatch, match="holdfast migrate"):
        await store.open()
    assert list(await store.migrate()) == [2]

    async with store:
        worker = worker_info()
        await store.register(worker)
        got = await store.claim(worker.id, queues=None, capabilities=frozenset(), limit=10)
        assert {one.task_id for one in got.claims} == {waiting.id, counted.id, locked.id}
        assert await store.count(TaskFilter(), limit=10) == 4
        assert (await store.stats()).states[State.RUNNING] == 3
        assert not await store.check()
    assert "holdfast.batches" not in await database.list_collection_names()
