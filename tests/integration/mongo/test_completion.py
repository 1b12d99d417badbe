"""`ctx.transaction()` on MongoDB: the handler's documents and the task's completion are one, also
when the connection breaks at the worst moment.
"""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pymongo import AsyncMongoClient, MongoClient
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError, OperationFailure
from pymongo.synchronous.client_session import ClientSession
from tests.integration.mongo.proxy import MongoProxy

from holdfast import Context, Fatal, Holdfast, State
from holdfast.core.attempt import Claim
from holdfast.errors import LeaseLost
from holdfast.stores.mongo.transactions import AsyncTransaction
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, loss, new_tasks, success, worker_info
from holdfast.testing.servers.mongo import GivenMongo, MongoServer
from holdfast.testing.servers.proxy import Fate

Document = dict[str, Any]
Mongo = MongoServer | GivenMongo


@pytest.fixture
async def app(fresh_mongo: str) -> AsyncIterator[Holdfast]:
    client: MongoClient[Document] = MongoClient(fresh_mongo)
    with client:  # here and not by transactions that race for it
        client.get_default_database().create_collection("booking")
    async with prepared(fresh_mongo) as app:
        yield app


def prepared(url: str) -> Holdfast:
    return Holdfast(url=url, heartbeat="1s", lease="10s", retry_base="10ms", poll="100ms")


def database_of(url: str) -> str:
    return urlsplit(url).path.lstrip("/")


def bookings(url: str) -> list[str]:
    client: MongoClient[Document] = MongoClient(url)
    with client:
        found = client.get_default_database().booking.find().sort("_id")
        return [one["customer"] for one in found]


async def book_in(session: AsyncClientSession, customer: str) -> None:
    booking = session.client.get_default_database().booking
    await booking.insert_one({"customer": customer}, session=session)


def book_plainly(session: ClientSession, customer: str) -> None:
    booking = session.client.get_default_database().booking
    booking.insert_one({"customer": customer}, session=session)


async def work(app: Holdfast, **options: Any) -> None:
    async with asyncio.timeout(60):
        await app.run_worker(burst=True, **options)


async def rescue(app: Holdfast, task_id: str) -> None:
    """Somebody else declares the running attempt lost, and the task goes on without it."""
    running = Claim.of(await app.get_async(task_id))
    assert not await app.client.store.save([loss(running)])


async def message_of(handle: Any) -> str:
    error = (await handle.task_async()).error
    assert error is not None
    return str(error.message)


class TestAsyncHandlers:
    async def test_documents_and_completion_are_committed_together(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        @app.task
        async def book(ctx: Context, customer: str) -> int:
            async with ctx.transaction() as session:
                assert isinstance(session, AsyncClientSession)
                await book_in(session, customer)
                assert bookings(fresh_mongo) == []
                ctx.log("inside")
                there = session.client.get_default_database().booking
                ctx.complete(await there.count_documents({}, session=session))
            raise Fatal("too late to change anything")

        handle = await book.submit_async("ada")
        await work(app)

        assert await handle.result_async() == 1
        assert bookings(fresh_mongo) == ["ada"]
        history = await handle.history_async()
        assert [event.kind for event in history.events] == ["submitted", "log"]
        assert [attempt.ended for attempt in history.attempts] == ["completed"]

    async def test_an_exception_inside_rolls_back_and_the_attempt_fails_as_usual(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        @app.task(max_retries=1)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as session:
                await book_in(session, f"attempt {ctx.attempt}")
                if ctx.attempt == 1:
                    raise ValueError("no")

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.COMPLETED
        assert bookings(fresh_mongo) == ["attempt 2"]

    async def test_a_zombie_that_was_rescued_inside_its_transaction_writes_nothing(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        raised: list[LeaseLost] = []

        @app.task(lock="doc")
        async def book(ctx: Context) -> None:
            try:
                async with ctx.transaction() as session:
                    await book_in(session, f"attempt {ctx.attempt}")
                    if ctx.attempt == 1:
                        async with asyncio.timeout(5):  # nothing of ours keeps the rescuer waiting
                            await rescue(app, ctx.id)
            except LeaseLost as error:
                raised.append(error)
                raise

        handle = await book.submit_async()
        await work(app)

        assert len(raised) == 1
        assert await handle.status_async() is State.COMPLETED
        assert bookings(fresh_mongo) == ["attempt 2"]
        kinds = [event.kind for event in (await handle.history_async()).events]
        assert "late_result_refused" in kinds

    async def test_the_late_result_of_a_zombie_does_not_disturb_its_heir(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        late: list[Claim] = []

        @app.task
        async def book(ctx: Context) -> None:
            if ctx.attempt == 1:
                late.append(Claim.of(await app.get_async(ctx.id)))
                await rescue(app, ctx.id)
                await asyncio.sleep(3600)
            async with ctx.transaction() as session:
                await book_in(session, f"attempt {ctx.attempt}")
                (refused,) = await app.client.store.save([success(late[0])])
                assert refused.attempt == 1

        handle = await book.options(timeout=600).submit_async()
        working = asyncio.create_task(work(app))
        async with asyncio.timeout(30):
            await handle.result_async()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

        history = await handle.history_async()
        assert [attempt.ended for attempt in history.attempts] == ["worker_lost", "completed"]
        assert "late_result_refused" in [event.kind for event in history.events]
        assert bookings(fresh_mongo) == ["attempt 2"]
        assert not await app.client.store.check()

    async def test_a_zombie_whose_transaction_wrote_nothing_is_refused_as_well(
        self, app: Holdfast
    ) -> None:
        @app.task
        async def nothing(ctx: Context) -> None:
            async with ctx.transaction():
                if ctx.attempt == 1:
                    await rescue(app, ctx.id)

        handle = await nothing.submit_async()
        await work(app)

        history = await handle.history_async()
        assert [attempt.ended for attempt in history.attempts] == ["worker_lost", "completed"]

    async def test_a_follow_up_submitted_through_it_is_part_of_it(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        ran: list[str] = []

        @app.task(lock="mail")
        async def send(customer: str) -> None:
            ran.append(customer)

        @app.task(max_retries=0)
        async def book(ctx: Context, customer: str) -> None:
            async with ctx.transaction() as session:
                await book_in(session, customer)
                await send.options(connection=session).submit_async(customer)
                if customer == "nobody":
                    raise ValueError(customer)

        await app.submit_many_async([book.call("ada"), book.call("nobody")])
        await work(app)

        assert ran == ["ada"]
        assert bookings(fresh_mongo) == ["ada"]

    async def test_an_error_that_was_caught_inside_is_explained(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as session:
                booking = session.client.get_default_database().booking
                await booking.insert_one({"_id": 1, "customer": "ada"}, session=session)
                with pytest.raises(DuplicateKeyError):
                    await booking.insert_one({"_id": 1, "customer": "ada"}, session=session)

        handle = await book.submit_async()
        await work(app)

        assert "its error was caught" in await message_of(handle)
        assert bookings(fresh_mongo) == []

    async def test_a_conflict_with_another_writer_fails_the_attempt_and_is_tried_again(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        other: AsyncMongoClient[Document] = AsyncMongoClient(fresh_mongo)

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
            handle = await book.submit_async()
            await work(app)

        assert await handle.status_async() is State.COMPLETED
        first, second = (await handle.history_async()).attempts
        assert first.error is not None
        assert first.error.type == OperationFailure.__name__
        assert second.error is None
        assert bookings(fresh_mongo) == ["ada"]

    async def test_the_session_cannot_end_the_transaction(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context, how: str) -> None:
            async with ctx.transaction() as session:
                await book_in(session, "ada")
                await getattr(session, how)()

        handles = await app.submit_many_async(
            [book.call("commit_transaction"), book.call("abort_transaction")]
        )
        await work(app)

        for handle in handles:
            assert "belongs to the task" in await message_of(handle)
        assert bookings(fresh_mongo) == []

    async def test_an_end_behind_our_back_is_found_out(self, app: Holdfast) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as session:
                await AsyncClientSession.abort_transaction(session)

        handle = await book.submit_async()
        await work(app)

        assert "was ended inside" in await message_of(handle)

    async def test_a_lock_held_by_it_is_passed_on(self, app: Holdfast) -> None:
        @app.task(lock="doc")
        async def book(ctx: Context) -> None:
            async with ctx.transaction():
                pass

        handles = await app.submit_many_async([book.call() for _ in range(5)])
        await work(app, concurrency=5)

        assert [await handle.status_async() for handle in handles] == [State.COMPLETED] * 5
        fences = [(await handle.task_async()).fence or 0 for handle in handles]
        assert fences == sorted(set(fences))

    async def test_many_lines_and_a_long_history_fit_into_it(self, app: Holdfast) -> None:
        @app.task
        async def tell(ctx: Context) -> None:
            async with ctx.transaction():
                for number in range(300):
                    ctx.log(f"{number} " + "x" * 8_000)

        handle = await tell.submit_async()
        await work(app)

        events = (await handle.history_async()).events
        lines = [event.detail or "" for event in events if event.kind == "log"]
        assert [int(line.split()[0]) for line in lines] == list(range(300))
        assert not await app.client.store.check()


class TestSyncHandlers:
    async def test_documents_and_completion_are_committed_together(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        @app.task
        def send(customer: str) -> None: ...

        @app.task
        def book(ctx: Context, customer: str) -> int:
            with ctx.transaction() as session:
                assert isinstance(session, ClientSession)
                book_plainly(session, customer)
                send.options(connection=session).submit(customer)
                ctx.progress(1, 1)
                ctx.complete(7)
            return -1

        handle = await book.submit_async("ada")
        await work(app)

        assert await handle.result_async() == 7
        assert (await handle.task_async()).progress is not None
        assert bookings(fresh_mongo) == ["ada"]
        assert await app.count_async(state="completed") == 2

    async def test_an_exception_inside_rolls_back(self, app: Holdfast, fresh_mongo: str) -> None:
        @app.task(max_retries=0)
        def book(ctx: Context) -> None:
            with ctx.transaction() as session:
                book_plainly(session, "ada")
                raise ValueError("no")

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.DEAD_LETTER
        assert bookings(fresh_mongo) == []

    async def test_a_zombie_that_was_rescued_inside_its_transaction_writes_nothing(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        loop = asyncio.get_running_loop()

        @app.task
        def book(ctx: Context) -> None:
            with ctx.transaction() as session:
                book_plainly(session, f"attempt {ctx.attempt}")
                if ctx.attempt == 1:
                    asyncio.run_coroutine_threadsafe(rescue(app, ctx.id), loop).result(5)

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.COMPLETED
        assert bookings(fresh_mongo) == ["attempt 2"]

    async def test_the_session_cannot_end_the_transaction(
        self, app: Holdfast, fresh_mongo: str
    ) -> None:
        @app.task(max_retries=0)
        def book(ctx: Context) -> None:
            with ctx.transaction() as session:
                book_plainly(session, "ada")
                session.commit_transaction()

        handle = await book.submit_async()
        await work(app)

        assert "belongs to the task" in await message_of(handle)
        assert bookings(fresh_mongo) == []


IN_A_PROCESS = """
from holdfast import Context, Holdfast

app = Holdfast(url={url!r}, retry_base="10ms", heartbeat="1s", lease="10s")

@app.task(executor="process")
def book(ctx: Context, customer: str) -> int:
    with ctx.transaction() as session:
        booking = session.client.get_default_database().booking
        booking.insert_one({{"customer": customer}}, session=session)
        ctx.complete(7)
    return -1
"""


async def test_a_handler_in_a_process_of_its_own_has_them_too(
    fresh_mongo: str, tmp_path: Path
) -> None:
    file = tmp_path / "shop.py"
    file.write_text(IN_A_PROCESS.format(url=fresh_mongo))
    made = runpy.run_path(str(file), run_name="shop")

    async with made["app"] as app:
        handle = await made["book"].submit_async("ada")
        await work(app, app_spec=f"{file}:app")

        assert await handle.result_async() == 7
    assert bookings(fresh_mongo) == ["ada"]


async def test_a_single_server_refuses_and_says_what_to_do(standalone_mongo: Mongo) -> None:
    async with prepared(standalone_mongo.url("refused")) as app:

        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            async with ctx.transaction():
                pytest.fail("there is none")

        handle = await book.submit_async()
        await work(app)

        assert "transactions" not in app.client.store.abilities
        error = (await handle.task_async()).error
        assert error is not None
        assert error.type.endswith("Unsupported")
        assert "rs.initiate()" in error.message


@pytest.mark.timeout(120)
class TestBrokenConnections:
    @pytest.mark.parametrize("times", [1, 2, 4])
    @pytest.mark.parametrize("kind", ["async", "sync"])
    @pytest.mark.parametrize(
        "fate",
        [Fate.LOSE_REQUEST, Fate.LATE_REQUEST, Fate.LOSE_ANSWER, Fate.CUT_ANSWER],
        ids=lambda fate: fate.name.lower(),
    )
    async def test_a_connection_cut_at_the_commit_is_found_out_never_guessed(
        self, mongo_server: Mongo, fresh_mongo: str, fate: Fate, kind: str, times: int
    ) -> None:
        """The driver sends a commit twice by itself; what is lost more often is ours to find."""
        if isinstance(mongo_server, GivenMongo):
            pytest.skip("the proxy knows only servers of our own")
        with MongoProxy(mongo_server.port) as proxy:
            async with prepared(proxy.url(database_of(fresh_mongo))) as app:

                @app.task(lock="doc")
                async def book_async(ctx: Context) -> None:
                    async with ctx.transaction() as session:
                        await book_in(session, f"attempt {ctx.attempt}")
                        if ctx.attempt == 1:
                            proxy.ambush("commitTransaction", fate, times=times)

                @app.task(lock="doc")
                def book_sync(ctx: Context) -> None:
                    with ctx.transaction() as session:
                        book_plainly(session, f"attempt {ctx.attempt}")
                        if ctx.attempt == 1:
                            proxy.ambush("commitTransaction", fate, times=times)

                handle = await (book_async if kind == "async" else book_sync).submit_async()
                await work(app)

                assert await handle.status_async() is State.COMPLETED
                attempts = (await handle.history_async()).attempts
                assert (await app.stats_async()).refused == 0, "it was guessed, and wrongly"
        # A commit that the server never heard is sent again until it is: it is one attempt too.
        assert len(attempts) == 1
        assert bookings(fresh_mongo) == ["attempt 1"]

    async def test_a_connection_cut_before_the_commit_is_an_ordinary_failure(
        self, mongo_server: Mongo, fresh_mongo: str
    ) -> None:
        if isinstance(mongo_server, GivenMongo):
            pytest.skip("the proxy knows only servers of our own")
        with MongoProxy(mongo_server.port) as proxy:
            async with prepared(proxy.url(database_of(fresh_mongo))) as app:

                @app.task
                async def book(ctx: Context) -> None:
                    async with ctx.transaction() as session:
                        await book_in(session, f"attempt {ctx.attempt}")
                        if ctx.attempt == 1:
                            proxy.ambush("aggregate.*txnNumber", Fate.LOSE_ANSWER)

                handle = await book.submit_async()
                await work(app)

                assert await handle.status_async() is State.COMPLETED
        assert bookings(fresh_mongo) == ["attempt 2"]

    @pytest.mark.parametrize("fate", [Fate.LOSE_REQUEST, Fate.LOSE_ANSWER])
    async def test_a_server_killed_during_the_commit_is_asked_when_it_is_back(
        self, own_mongo: MongoServer, fate: Fate
    ) -> None:
        with MongoProxy(own_mongo.port) as proxy:
            async with prepared(proxy.url("shop")) as app:
                restarted: list[asyncio.Future[None]] = []

                @app.task
                async def book(ctx: Context) -> None:
                    async with ctx.transaction() as session:
                        await book_in(session, f"attempt {ctx.attempt}")
                        if ctx.attempt == 1:
                            ambush = proxy.ambush("commitTransaction", fate)

                            def restart() -> None:
                                assert ambush.sprung.wait(10)
                                if fate is Fate.LOSE_ANSWER:
                                    proxy.rule = lambda text: (
                                        Fate.LOSE_REQUEST if "commitTransaction" in text else None
                                    )
                                own_mongo.restart()
                                proxy.rule = lambda text: None

                            loop = asyncio.get_running_loop()
                            restarted.append(loop.run_in_executor(None, restart))

                handle = await book.submit_async()
                await work(app)
                await asyncio.gather(*restarted)

                assert await handle.status_async() is State.COMPLETED
                attempts = (await handle.history_async()).attempts
                assert (await app.stats_async()).refused == 0, "it was guessed, and wrongly"
        assert bookings(own_mongo.url("shop")) == [f"attempt {len(attempts)}"]

    async def test_a_commit_that_the_driver_repeats_to_a_restarted_server_is_looked_up(
        self, own_mongo: MongoServer
    ) -> None:
        """The driver asks twice before it tells anybody, and the second one may have forgotten."""
        with MongoProxy(own_mongo.port) as proxy:
            async with prepared(proxy.url("shop")) as app:
                restarted: list[asyncio.Task[None]] = []

                async def restart() -> None:
                    await eventually(lambda: proxy.held)
                    await asyncio.to_thread(own_mongo.restart)
                    proxy.cut()

                @app.task
                async def book(ctx: Context) -> None:
                    async with ctx.transaction() as session:
                        await book_in(session, f"attempt {ctx.attempt}")
                        proxy.ambush("commitTransaction", Fate.STALL)
                        restarted.append(asyncio.create_task(restart()))

                handle = await book.submit_async()
                await work(app)
                await asyncio.gather(*restarted)

                assert await handle.status_async() is State.COMPLETED
                assert (await app.stats_async()).refused == 0, "it was guessed, and wrongly"
        assert bookings(own_mongo.url("shop")) == ["attempt 1"]

    async def test_a_worker_that_falls_silent_before_its_commit_holds_nobody_up(
        self, app: Holdfast, fresh_mongo: str, monkeypatch: pytest.MonkeyPatch
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
        (claim,) = (
            await store.claim(worker.id, queues=None, capabilities=frozenset(), limit=1)
        ).claims

        async def complete() -> None:
            async with store.transaction(claim) as inside:
                assert isinstance(inside.connection, AsyncClientSession)
                await book_in(inside.connection, "silent")
                await inside.complete(success(claim))

        completing = asyncio.create_task(complete())
        await silent.wait()
        async with asyncio.timeout(10):
            assert not await store.save([loss(claim)])

        assert await app.count_async(state="queued") == 1
        completing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await completing
        assert bookings(fresh_mongo) == []
        assert not await store.check()
