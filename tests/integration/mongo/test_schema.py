"""Collections and indexes: made once, by whoever comes first, and mended on request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from tests.kit.servers.mongo import MongoServer

from holdfast.errors import SchemaMismatch, StoreError
from holdfast.stores.mongo.schema import BOARD, INDEXES, NEVER, VERSION
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import WINDOW, new_tasks
from holdfast.wiring import schema_script, scratch_store

Database = AsyncDatabase[dict[str, Any]]


@pytest.fixture
async def database(fresh_mongo: str) -> AsyncIterator[Database]:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(fresh_mongo)
    async with client:
        yield client.get_default_database()


async def names(database: Database, collection: str) -> set[str]:
    return set(await database[collection].index_information())


async def test_many_that_open_an_empty_database_at_once_all_find_it_ready(
    fresh_mongo: str, database: Database
) -> None:
    stores = [MongoStore(fresh_mongo) for _ in range(4)]

    await asyncio.gather(*(store.open() for store in stores))

    assert [await store.schema_version() for store in stores] == [VERSION] * 4
    wanted = {index.name for index in INDEXES["tasks"]}
    assert await names(database, "holdfast.tasks") == {"_id_", *wanted}
    for store in stores:
        await store.close()


async def test_the_version_can_be_asked_without_making_anything(
    fresh_mongo: str, database: Database
) -> None:
    assert await MongoStore(fresh_mongo).schema_version() == 0
    assert await database.list_collection_names() == []


async def test_migrate_says_what_it_did_and_is_done_once(fresh_mongo: str) -> None:
    store = MongoStore(fresh_mongo)

    assert list(await store.migrate()) == [VERSION]
    assert list(await store.migrate()) == []


async def test_a_dropped_index_is_missed_and_made_again(
    fresh_mongo: str, database: Database
) -> None:
    async with MongoStore(fresh_mongo, clock=FakeClock()) as store:
        await database["holdfast.tasks"].drop_index("holds")

        (problem,) = await store.check()
        await store.migrate()

        assert "index holds of holdfast.tasks is missing" in problem
        assert list(await store.check()) == []


async def test_a_newer_version_is_refused(fresh_mongo: str, database: Database) -> None:
    async with MongoStore(fresh_mongo):
        pass
    await database["holdfast.state"].update_one({"_id": BOARD}, {"$set": {"schema": VERSION + 1}})

    for refused in (MongoStore(fresh_mongo).open, MongoStore(fresh_mongo).migrate):
        with pytest.raises(SchemaMismatch, match="newer Holdfast"):
            await refused()


async def test_documents_of_somebody_else_are_left_alone(
    fresh_mongo: str, database: Database
) -> None:
    await database["holdfast.tasks"].insert_one({"mine": True})

    with pytest.raises(StoreError, match=r"Give Holdfast a name of its own"):
        await MongoStore(fresh_mongo).open()

    assert await names(database, "holdfast.tasks") == {"_id_"}


async def test_two_schemas_in_one_database_are_two_queues(fresh_mongo: str) -> None:
    async with (
        MongoStore(fresh_mongo) as one,
        MongoStore(f"{fresh_mongo}?schema=other") as other,
    ):
        await one.add(new_tasks(2), idempotency_window=WINDOW)

        assert sum((await one.stats()).states.values()) == 2
        assert sum((await other.stats()).states.values()) == 0


async def test_what_is_ended_goes_by_itself_only_after_a_prune_said_when(
    fresh_mongo: str, database: Database
) -> None:
    async with MongoStore(fresh_mongo) as store:
        before = await database["holdfast.tasks"].index_information()
        await store.prune(retention=3600.0, dead_letter_retention=7200.0, limit=10)
        after = await database["holdfast.tasks"].index_information()

    day = 86_400
    ttl = [(each["ended_on"], each["died_on"]) for each in (before, after)]
    assert [tuple(index["expireAfterSeconds"] for index in pair) for pair in ttl] == [
        (NEVER, NEVER),
        (3600 + day, 7200 + day),
    ]


async def test_a_test_clock_makes_no_index_that_removes_by_the_real_one(
    fresh_mongo: str, database: Database
) -> None:
    async with MongoStore(fresh_mongo, clock=FakeClock()):
        pass

    indexes = await database["holdfast.tasks"].index_information()
    assert [name for name, index in indexes.items() if "expireAfterSeconds" in index] == []


def test_the_script_names_every_index(fresh_mongo: str) -> None:
    version, script = schema_script(f"{fresh_mongo}?schema=jobs")

    assert version == VERSION
    assert script.count("createIndex") == sum(len(indexes) for indexes in INDEXES.values())
    assert 'db.getCollection("jobs.tasks").createIndex({"holds": 1}' in script


async def test_a_scratch_store_leaves_nothing(fresh_mongo: str, database: Database) -> None:
    def measure() -> None:
        with scratch_store(fresh_mongo) as url:
            asyncio.run(_fill(url))

    await asyncio.to_thread(measure)

    assert await database.list_collection_names() == []


async def _fill(url: str) -> None:
    async with MongoStore(url) as store:
        await store.add(new_tasks(3), idempotency_window=WINDOW)


async def test_a_single_server_is_refused_with_the_two_commands_that_make_it_a_set() -> None:
    with MongoServer(standalone=True) as server:
        for refused in (MongoStore(server.url()).open, MongoStore(server.url()).migrate):
            with pytest.raises(StoreError, match="single server") as raised:
                await refused()

            assert "mongod --replSet rs0" in str(raised.value)
            assert "rs.initiate()" in str(raised.value)
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(server.url())
        async with client:
            assert await client.get_default_database().list_collection_names() == []
