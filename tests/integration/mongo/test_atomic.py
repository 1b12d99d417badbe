"""Transactions of the store itself: whoever waits for one does not keep it from ending."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.mongo.watching import Watch, name_of

from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_task


async def test_a_transaction_ends_though_writers_that_wait_for_it_have_all_connections(
    fresh_mongo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch.install(monkeypatch)
    task = new_task()
    async with MongoStore(f"{fresh_mongo}?maxPoolSize=1") as store, store._server() as db:
        await store.add([task], idempotency_window=WINDOW)
        waiting: list[asyncio.Task[object]] = []

        async def work(inside: Collections) -> None:
            change = {"$set": {"owner": "inside"}}
            await inside.tasks.update_one({"_id": task.id}, change, session=inside.session)
            with watch.over() as said:
                change = {"$set": {"owner": "outside"}}
                plain = db.tasks.update_one({"_id": task.id}, change)
                waiting.append(asyncio.create_task(plain))
                await eventually(lambda: any(name_of(one) == "update" for one in said))

        async with asyncio.timeout(20):
            await atomically(db, work)
            await waiting[0]

        found = await store.get(task.id)
        assert found is not None
        assert found.owner == "outside"
