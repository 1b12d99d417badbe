"""`ctx.transaction()` on MongoDB: conflicts, heirs, long histories and silence.

What happens when its server is killed is in `test_mongo_restarts.py`.
"""

from __future__ import annotations

import asyncio

import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import OperationFailure
from tests.integration.transactions.bookshops.base import (
    endings_of,
    kinds_of,
    message_of,
    ran,
    rescue,
    work,
)
from tests.integration.transactions.bookshops.mongo import Document, MongoBookshop

from holdfast import Context, Holdfast, State
from holdfast.core.attempt import Claim
from holdfast.stores.mongo.transactions import AsyncTransaction
from holdfast.testing.factories import WINDOW, loss, new_tasks, success, worker_info


@pytest.fixture
def bookshop(mongo_bookshop: MongoBookshop) -> MongoBookshop:
    return mongo_bookshop


async def test_the_late_result_of_a_zombie_does_not_disturb_its_heir(
    app: Holdfast, bookshop: MongoBookshop
) -> None:
    late: list[Claim] = []

    @app.task
    async def book(ctx: Context) -> None:
        if ctx.attempt == 1:
            late.append(Claim.of(await app.get_async(ctx.id)))
            await rescue(app, ctx.id)
            await asyncio.sleep(3600)
        async with ctx.transaction() as session:
            await bookshop.book(session, f"attempt {ctx.attempt}")
            (refused,) = await app.client.store.save([success(late[0])])
            assert refused.attempt == 1

    handle = await book.options(timeout=600).submit_async()
    working = asyncio.create_task(work(app))
    async with asyncio.timeout(30):
        await handle.result_async()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working

    assert await endings_of(handle) == ["worker_lost", "completed"]
    assert "late_result_refused" in await kinds_of(handle)
    assert bookshop.bookings() == ["attempt 2"]
    assert not await app.client.store.check()


async def test_a_zombie_whose_transaction_wrote_nothing_is_refused_as_well(app: Holdfast) -> None:
    @app.task
    async def nothing(ctx: Context) -> None:
        async with ctx.transaction():
            if ctx.attempt == 1:
                await rescue(app, ctx.id)

    handle = await ran(app, nothing)

    assert await endings_of(handle) == ["worker_lost", "completed"]


async def test_a_conflict_with_another_writer_fails_the_attempt_and_is_tried_again(
    app: Holdfast, bookshop: MongoBookshop
) -> None:
    other: AsyncMongoClient[Document] = AsyncMongoClient(bookshop.url)

    @app.task(max_retries=1)
    async def book(ctx: Context) -> None:
        async with ctx.transaction() as session:
            booking = session.client.get_default_database().booking
            await booking.find_one({"_id": 1}, session=session)
            if ctx.attempt == 1:
                theirs = other.get_default_database().booking
                await theirs.update_one({"_id": 1}, {"$set": {"customer": "eve"}})
            change = {"$set": {"customer": "ada"}}
            await booking.update_one({"_id": 1}, change, session=session)

    async with other:
        await other.get_default_database().booking.insert_one({"_id": 1, "customer": ""})
        handle = await ran(app, book)

    assert await handle.status_async() is State.COMPLETED
    first, second = (await handle.history_async()).attempts
    assert first.error is not None
    assert first.error.type == OperationFailure.__name__
    assert second.error is None
    assert bookshop.bookings() == ["ada"]


async def test_the_session_of_an_async_handler_cannot_end_the_transaction_either(
    app: Holdfast, bookshop: MongoBookshop
) -> None:
    @app.task(max_retries=0)
    async def book(ctx: Context, how: str) -> None:
        async with ctx.transaction() as session:
            await bookshop.book(session, "ada")
            await getattr(session, how)()

    handles = await app.submit_many_async(
        [book.call("commit_transaction"), book.call("abort_transaction")]
    )
    await work(app)

    for handle in handles:
        assert "belongs to the task" in await message_of(handle)
    assert bookshop.bookings() == []


async def test_many_lines_and_a_long_history_fit_into_it(app: Holdfast) -> None:
    @app.task
    async def tell(ctx: Context) -> None:
        async with ctx.transaction():
            for number in range(300):
                ctx.log(f"{number} " + "x" * 3_000)

    handle = await ran(app, tell)

    events = (await handle.history_async()).events
    lines = [event.detail or "" for event in events if event.kind == "log"]
    assert [int(line.split()[0]) for line in lines] == list(range(300))
    assert not await app.client.store.check()


async def test_a_worker_that_falls_silent_before_its_commit_holds_nobody_up(
    app: Holdfast, bookshop: MongoBookshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = asyncio.Event()

    async def fall_silent(_: AsyncTransaction) -> None:
        silent.set()
        await asyncio.sleep(3600)

    monkeypatch.setattr(AsyncTransaction, "_commit", fall_silent)
    store = app.client.store
    worker = worker_info()
    await store.register(worker)
    await store.add(new_tasks(1), idempotency_window=WINDOW)
    (claim,) = (await store.claim(worker.id, queues=None, capabilities=frozenset(), limit=1)).claims

    async def complete() -> None:
        async with store.transaction(claim) as inside:
            assert isinstance(inside.connection, AsyncClientSession)
            await bookshop.book(inside.connection, "silent")
            await inside.complete(success(claim))

    completing = asyncio.create_task(complete())
    await silent.wait()
    async with asyncio.timeout(10):
        assert not await store.save([loss(claim)])

    assert await app.count_async(state="queued") == 1
    completing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await completing
    assert bookshop.bookings() == []
    assert not await store.check()
