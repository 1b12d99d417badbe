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
from holdfast.stores.mongo.schema import BOARD, VERSION
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import WINDOW, new_task, success, worker_info

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
    await database["holdfast.gates"].drop()
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
    assert list(await store.migrate()) == [VERSION]

    async with store:
        worker = worker_info()
        await store.register(worker)
        got = await store.claim(worker.id, queues=None, capabilities=frozenset(), limit=10)
        assert {one.task_id for one in got.claims} == {waiting.id, counted.id, locked.id}
        assert await store.count(TaskFilter(), limit=10) == 4
        assert (await store.stats()).states[State.RUNNING] == 3
        assert not await store.check()
    assert "holdfast.batches" not in await database.list_collection_names()


@pytest.mark.parametrize("key", ["k", "lock:k"])
async def test_locks_in_use_are_gates_after_migrate_and_stay_with_who_has_them(
    fresh_mongo: str, database: Database, key: str
) -> None:
    clock, worker = FakeClock(), worker_info()
    tasks = running, inside, *_ = [new_task(lock=k) for k in (key, "ended", key, key, "ended")]
    async with MongoStore(fresh_mongo, clock=clock) as store:
        await store.register(worker)
        await store.add(tasks, idempotency_window=WINDOW)
        got = await store.claim(worker.id, queues=None, capabilities=frozenset(), limit=10)
        async with store.transaction(got.claims[1]) as transaction:
            await transaction.complete(success(got.claims[1]))
    await _as_schema_2(database, ended=inside.id)
    store = MongoStore(fresh_mongo, clock=clock)

    assert list(await store.migrate()) == [VERSION]
    await database["holdfast.state"].update_one({"_id": BOARD}, {"$set": {"schema": 2}})
    assert list(await store.migrate()) == [VERSION]  # after a death it is done again

    async with store:
        again = await store.claim(worker.id, queues=None, capabilities=frozenset(), limit=10)
        assert [one.task_id for one in again.claims] == [tasks[4].id]
        assert not await store.check()
        await store.save([success(got.claims[0])])
        (found,) = await store.gates(names=[f"lock:{key}"], limit=1)
        assert (found.holder, found.parked) == (tasks[2].id, 1)
        assert running.id == got.claims[0].task_id
    assert "holdfast.locks" not in await database.list_collection_names()


async def _as_schema_2(database: Database, ended: TaskId) -> None:
    """As it was before gates; a handler's transaction has ended and its lock was not passed on."""
    kept = database["holdfast.tasks"]
    moved = await kept.find_one({"lock": "ended", "place": "ready"})
    assert moved is not None
    back = {"place": "blocked", "state": "blocked", "waits_for": "x", "order": moved["ready"][:24]}
    marks = dict.fromkeys(("ready", "ready_lane", "holds"), "")
    await kept.update_one({"_id": moved["_id"]}, {"$set": back, "$unset": marks})
    await kept.update_one({"_id": ended}, {"$set": {"holds": "ended", "alarm": 0}})
    async for one in kept.find({"waits_for": {"$exists": True}}):
        await kept.update_one({"_id": one["_id"]}, {"$set": {"waits_for": one["lock"]}})
    await database["holdfast.gates"].drop()
    await database["holdfast.locks"].insert_one({"_id": "k", "turn": 1})
    await database["holdfast.state"].update_one({"_id": BOARD}, {"$set": {"schema": 2}})
