"""Submitting inside one's own MongoDB transaction, in a session of either face of the driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pymongo import AsyncMongoClient, MongoClient
from pymongo.asynchronous.client_session import AsyncClientSession
from tests.kit.servers.mongo import MongoServer

from holdfast import Holdfast, State
from holdfast.definitions.definition import Definition
from holdfast.errors import IdempotencyConflict, InvalidOption

Document = dict[str, Any]
Send = Definition[..., Any, Any]


@pytest.fixture
async def app(fresh_mongo: str, plain: MongoClient[Document]) -> AsyncIterator[Holdfast]:
    app = Holdfast(url=fresh_mongo, poll="100ms")

    @app.task(name="send")
    def send(customer: str) -> str:
        return customer

    async with app:
        plain.get_default_database().create_collection("booking")
        yield app


@pytest.fixture
def send(app: Holdfast) -> Send:
    return app.registry["send"]


@pytest.fixture
def plain(fresh_mongo: str) -> Iterator[MongoClient[Document]]:
    """A caller's client, which knows nothing of ours: not even aware times."""
    client: MongoClient[Document] = MongoClient(fresh_mongo)
    with client:
        yield client


@pytest.fixture
async def client(fresh_mongo: str) -> AsyncIterator[AsyncMongoClient[Document]]:
    client: AsyncMongoClient[Document] = AsyncMongoClient(fresh_mongo)
    async with client:
        yield client


def booked(client: MongoClient[Document]) -> int:
    return client.get_default_database().booking.count_documents({})


def test_a_sync_submit_is_seen_at_commit_and_gone_at_rollback(
    app: Holdfast, send: Send, plain: MongoClient[Document]
) -> None:
    booking = plain.get_default_database().booking
    with plain.start_session() as session, session.start_transaction():
        booking.insert_one({"customer": "ada"}, session=session)
        handle = send.options(connection=session, tags=["x"], queue="mail").submit("ada")
        many = app.submit_many([send.call(n) for n in "abc"], connection=session)
        assert app.count() == 0

    assert handle.created
    assert (app.count(), booked(plain)) == (4, 1)
    task = handle.task()
    assert (task.state, task.queue, task.tags) == (State.QUEUED, "mail", ("x",))
    assert len({each.id for each in many}) == 3

    with plain.start_session() as session, session.start_transaction():
        booking.insert_one({"customer": "eve"}, session=session)
        gone = send.options(connection=session).submit("eve")
        session.abort_transaction()

    assert gone.id not in {task.id for task in app.list().tasks}
    assert (app.count(), booked(plain)) == (4, 1)


async def test_an_async_submit_is_seen_at_commit_and_gone_at_rollback(
    app: Holdfast, send: Send, client: AsyncMongoClient[Document]
) -> None:
    async with client.start_session() as session:
        async with await session.start_transaction():
            handle = await send.options(connection=session).submit_async("ada")
            assert await app.count_async() == 0
        assert await app.count_async() == 1
        async with await session.start_transaction():
            await send.options(connection=session).submit_async("eve")
            await session.abort_transaction()

    assert await app.count_async() == 1
    await app.run_worker(burst=True)
    assert await handle.result_async() == "ada"


async def test_a_locked_task_is_ready_after_the_commit_and_nobody_waits_for_it_before(
    app: Holdfast, send: Send, client: AsyncMongoClient[Document]
) -> None:
    locked = send.options(lock="doc:1")
    async with client.start_session() as session, await session.start_transaction():
        within = await locked.options(connection=session).submit_async("within")
        async with asyncio.timeout(5):
            outside = await locked.submit_async("outside")
            await app.run_worker(burst=True)
        assert await outside.result_async() == "outside"

    async with asyncio.timeout(20):
        await app.run_worker(burst=True)

    assert await within.result_async() == "within"
    assert not await app.client.store.check()


async def test_two_transactions_that_race_for_a_unique_key_make_one_task(
    app: Holdfast, send: Send, client: AsyncMongoClient[Document]
) -> None:
    """The driver's `with_transaction` tries again what lost, and then finds the winner's."""
    both_looked = asyncio.Barrier(2)
    tried: list[str] = []

    async def submit(who: str) -> bool:
        async def inside(session: AsyncClientSession) -> bool:
            booking = client.get_default_database().booking
            await booking.find_one({}, session=session)  # the snapshot is of now
            if who not in tried:
                tried.append(who)
                await both_looked.wait()
            once = send.options(connection=session, unique_key="once")
            return (await once.submit_async(who)).created

        async with client.start_session() as session:
            return await session.with_transaction(inside)

    async with asyncio.timeout(30):
        created = await asyncio.gather(submit("ada"), submit("eve"))

    assert sorted(created) == [False, True]
    assert await app.count_async() == 1


async def test_an_idempotency_key_holds_across_transactions(
    app: Holdfast, send: Send, client: AsyncMongoClient[Document]
) -> None:
    async with client.start_session() as session, await session.start_transaction():
        first = await send.options(connection=session, idempotency_key="k").submit_async("ada")
        again = await send.options(connection=session, idempotency_key="k").submit_async("ada")
        with pytest.raises(IdempotencyConflict):
            await send.options(connection=session, idempotency_key="k").submit_async("eve")

    assert (again.id, again.created) == (first.id, False)
    assert await app.count_async() == 1
    assert (await send.options(idempotency_key="k").submit_async("ada")).id == first.id


async def test_a_session_that_cannot_be_meant_is_refused(
    app: Holdfast,
    send: Send,
    client: AsyncMongoClient[Document],
    plain: MongoClient[Document],
    own_mongo: MongoServer,
) -> None:
    async with client.start_session() as session:
        with pytest.raises(InvalidOption, match="no transaction open"):
            await send.options(connection=session).submit_async("ada")
        with pytest.raises(InvalidOption, match="asynchronous"):
            await asyncio.to_thread(send.options(connection=session).submit, "ada")
    with plain.start_session() as session, pytest.raises(InvalidOption, match="synchronous"):
        await send.options(connection=session).submit_async("ada")
    elsewhere: AsyncMongoClient[Document] = AsyncMongoClient(own_mongo.url("elsewhere"))
    async with elsewhere, elsewhere.start_session() as session:
        await session.start_transaction()
        with pytest.raises(InvalidOption, match="leads elsewhere"):
            await send.options(connection=session).submit_async("ada")
    assert await app.count_async() == 0
