"""`ctx.transaction()` on PostgreSQL: the handler's rows and the task's completion are one, also
when the connection breaks at the worst moment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from holdfast import Context, Fatal, Holdfast, State
from holdfast.core.attempt import Claim
from holdfast.core.task import WorkerId
from holdfast.errors import LeaseLost
from holdfast.stores.postgres import transactions
from holdfast.testing.factories import loss, worker_info
from holdfast.testing.servers.pgbouncer import PgBouncer
from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.proxy import Fate, Proxy

BOOK = "INSERT INTO booking VALUES ($1)"


@pytest.fixture
async def app(fresh_database: str) -> AsyncIterator[Holdfast]:
    async with await prepared(fresh_database, fresh_database) as app:
        yield app


async def prepared(url: str, direct: str) -> Holdfast:
    await fetch(direct, "CREATE TABLE booking (customer text NOT NULL)")
    return Holdfast(url=url, heartbeat="1s", lease="10s", retry_base="10ms")


async def fetch(url: str, sql: str) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def bookings(url: str) -> list[str]:
    return await fetch(url, "SELECT customer FROM booking ORDER BY ctid")


async def work(app: Holdfast) -> None:
    async with asyncio.timeout(60):
        await app.run_worker(burst=True)


async def rescue(app: Holdfast, task_id: str) -> None:
    """Somebody else declares the running attempt lost, and the task goes on without it."""
    running = Claim.of(await app.get_async(task_id))
    assert not await app.client.store.save([loss(running)])


class TestAsyncHandlers:
    async def test_rows_and_completion_are_committed_together(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        @app.task
        async def book(ctx: Context, customer: str) -> int:
            async with ctx.transaction() as conn:
                assert isinstance(conn, asyncpg.Connection)
                await conn.execute(BOOK, customer)
                assert await bookings(fresh_database) == []
                ctx.log("inside")
                ctx.complete(await conn.fetchval("SELECT count(*) FROM booking"))
            raise Fatal("too late to change anything")

        handle = await book.submit_async("ada")
        await work(app)

        assert await handle.result_async() == 1
        assert await bookings(fresh_database) == ["ada"]
        history = await handle.history_async()
        assert [event.kind for event in history.events] == ["submitted", "log"]
        assert [attempt.ended for attempt in history.attempts] == ["completed"]

    async def test_an_exception_inside_rolls_back_and_the_attempt_fails_as_usual(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        @app.task(max_retries=1)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, f"attempt {ctx.attempt}")
                if ctx.attempt == 1:
                    raise ValueError("no")

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.COMPLETED
        assert await bookings(fresh_database) == ["attempt 2"]

    async def test_a_zombie_that_was_rescued_inside_its_transaction_writes_nothing(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        raised: list[LeaseLost] = []

        @app.task
        async def book(ctx: Context) -> None:
            try:
                async with ctx.transaction() as conn:
                    await conn.execute(BOOK, f"attempt {ctx.attempt}")
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
        assert await bookings(fresh_database) == ["attempt 2"]
        kinds = [event.kind for event in (await handle.history_async()).events]
        assert "late_result_refused" in kinds

    async def test_a_follow_up_submitted_through_it_is_part_of_it(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        ran: list[str] = []

        @app.task
        async def send(customer: str) -> None:
            ran.append(customer)

        @app.task(max_retries=0)
        async def book(ctx: Context, customer: str) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, customer)
                await send.options(connection=conn).submit_async(customer)
                if customer == "nobody":
                    raise ValueError(customer)

        await app.submit_many_async([book.call("ada"), book.call("nobody")])
        await work(app)

        assert ran == ["ada"]
        assert await bookings(fresh_database) == ["ada"]

    async def test_savepoints_are_the_handlers_business(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        @app.task
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, "ada")
                with pytest.raises(asyncpg.NotNullViolationError):
                    async with conn.transaction():
                        await conn.execute(BOOK, None)

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.COMPLETED
        assert await bookings(fresh_database) == ["ada"]

    async def test_an_error_that_was_caught_without_a_savepoint_is_explained(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                with pytest.raises(asyncpg.NotNullViolationError):
                    await conn.execute(BOOK, None)

        handle = await book.submit_async()
        await work(app)

        error = (await handle.task_async()).error
        assert error is not None
        assert "savepoint" in error.message

    async def test_a_commit_of_the_handlers_own_is_found_out(self, app: Holdfast) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await conn.execute("COMMIT")

        handle = await book.submit_async()
        await work(app)

        error = (await handle.task_async()).error
        assert error is not None
        assert "was ended inside" in error.message

    async def test_a_constraint_that_fails_at_commit_fails_the_attempt(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        await fetch(
            fresh_database,
            "CREATE TABLE part (whole int UNIQUE, of int REFERENCES part (whole)"
            " DEFERRABLE INITIALLY DEFERRED)",
        )

        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await conn.execute("INSERT INTO part VALUES (1, 2)")

        handle = await book.submit_async()
        await work(app)

        task = await handle.task_async()
        assert task.state is State.DEAD_LETTER
        assert task.error is not None
        assert task.error.type == "ForeignKeyViolationError"

    async def test_what_a_handler_sets_is_not_seen_by_the_next(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        seen: list[str] = []

        @app.task
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                seen.append(await conn.fetchval("SELECT current_setting('search_path')"))
                await conn.execute("SET search_path = pg_catalog")

        await app.submit_many_async([book.call(), book.call()])
        async with asyncio.timeout(60):
            await app.run_worker(burst=True, concurrency=1)

        assert seen == ['"$user", public'] * 2

    async def test_a_timeout_inside_a_statement_rolls_back_and_frees_the_slot(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context, seconds: float) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, str(seconds))
                await conn.execute("SELECT pg_sleep($1)", seconds)

        slow = await book.options(timeout=0.3).submit_async(30.0)
        quick = await book.submit_async(0.0)
        began = time.monotonic()
        async with asyncio.timeout(60):
            await app.run_worker(burst=True, concurrency=1)

        assert time.monotonic() - began < 10
        assert (await slow.task_async()).reason == "timeout"
        assert await quick.status_async() is State.COMPLETED
        assert await bookings(fresh_database) == ["0.0"]

    async def test_more_handlers_than_connections_all_get_their_turn(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        @app.task
        async def book(ctx: Context, n: int) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, str(n))
                await asyncio.sleep(0.05)

        await app.submit_many_async([book.call(n) for n in range(60)])
        async with asyncio.timeout(60):
            await app.run_worker(burst=True, concurrency=30)

        assert sorted(await bookings(fresh_database), key=int) == [str(n) for n in range(60)]

    async def test_it_works_through_pgbouncer(
        self, postgres: PostgresServer, fresh_database: str
    ) -> None:
        name = urlsplit(fresh_database).path.lstrip("/")
        with PgBouncer(postgres, size=5) as bouncer:
            url = f"{bouncer.url(name)}?pgbouncer=true"
            async with await prepared(url, fresh_database) as app:

                @app.task
                async def book(ctx: Context, n: int) -> None:
                    async with ctx.transaction() as conn:
                        await conn.execute(BOOK, str(n))

                await app.submit_many_async([book.call(n) for n in range(20)])
                await work(app)

                assert (await app.stats_async()).states[State.COMPLETED] == 20
        assert len(await bookings(fresh_database)) == 20


class TestSyncHandlers:
    async def test_rows_and_completion_are_committed_together(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        @app.task
        def send(customer: str) -> None: ...

        @app.task
        def book(ctx: Context, customer: str) -> int:
            with ctx.transaction() as conn:
                assert isinstance(conn, psycopg.Connection)
                conn.execute("INSERT INTO booking VALUES (%s)", (customer,))
                send.options(connection=conn).submit(customer)
                ctx.progress(1, 1)
                ctx.complete(7)
            return -1

        handle = await book.submit_async("ada")
        await work(app)

        assert await handle.result_async() == 7
        assert (await handle.task_async()).progress is not None
        assert await bookings(fresh_database) == ["ada"]
        assert await app.count_async(state="completed") == 2

    async def test_an_exception_inside_rolls_back(self, app: Holdfast, fresh_database: str) -> None:
        @app.task(max_retries=0)
        def book(ctx: Context) -> None:
            with ctx.transaction() as conn:
                conn.execute("INSERT INTO booking VALUES ('ada')")
                raise ValueError("no")

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.DEAD_LETTER
        assert await bookings(fresh_database) == []

    async def test_a_zombie_that_was_rescued_inside_its_transaction_writes_nothing(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        loop = asyncio.get_running_loop()

        @app.task
        def book(ctx: Context) -> None:
            with ctx.transaction() as conn:
                conn.execute("INSERT INTO booking VALUES (%s)", (f"attempt {ctx.attempt}",))
                if ctx.attempt == 1:
                    asyncio.run_coroutine_threadsafe(rescue(app, ctx.id), loop).result(5)

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.COMPLETED
        assert await bookings(fresh_database) == ["attempt 2"]

    async def test_the_connection_cannot_end_the_transaction(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        @app.task(max_retries=0)
        def book(ctx: Context, how: str) -> None:
            with ctx.transaction() as conn:
                conn.execute("INSERT INTO booking VALUES ('ada')")
                getattr(conn, how)()

        handles = await app.submit_many_async(
            [book.call("commit"), book.call("rollback"), book.call("__enter__")]
        )
        await work(app)

        for handle in handles:
            error = (await handle.task_async()).error
            assert error is not None
            assert "belongs to the task" in error.message
        assert await bookings(fresh_database) == []


HAPPENED = {Fate.LATE_REQUEST, Fate.LOSE_ANSWER, Fate.CUT_ANSWER, Fate.DELAY}


class TestBrokenConnections:
    @pytest.mark.parametrize("kind", ["async", "sync"])
    @pytest.mark.parametrize(
        "fate",
        [Fate.LOSE_REQUEST, Fate.LATE_REQUEST, Fate.LOSE_ANSWER, Fate.CUT_ANSWER, Fate.DELAY],
        ids=lambda fate: fate.name.lower(),
    )
    async def test_a_connection_cut_at_the_commit_is_found_out_never_guessed(
        self, postgres: PostgresServer, fresh_database: str, fate: Fate, kind: str
    ) -> None:
        name = urlsplit(fresh_database).path.lstrip("/")
        with Proxy(postgres.port) as proxy:
            url = postgres.url(name, port=proxy.port)
            async with await prepared(url, fresh_database) as app:

                @app.task
                async def book_async(ctx: Context) -> None:
                    async with ctx.transaction() as conn:
                        await conn.execute(BOOK, f"attempt {ctx.attempt}")
                        if ctx.attempt == 1:
                            proxy.ambush("^commit", fate)

                @app.task
                def book_sync(ctx: Context) -> None:
                    with ctx.transaction() as conn:
                        conn.execute("INSERT INTO booking VALUES (%s)", [f"attempt {ctx.attempt}"])
                        if ctx.attempt == 1:
                            proxy.ambush("^commit", fate)

                handle = await (book_async if kind == "async" else book_sync).submit_async()
                await work(app)

                assert await handle.status_async() is State.COMPLETED
                attempts = (await handle.history_async()).attempts
                assert (await app.stats_async()).refused == 0, "it was guessed, and wrongly"
        expected = 1 if fate in HAPPENED else 2
        assert len(attempts) == expected
        assert await bookings(fresh_database) == [f"attempt {expected}"]

    async def test_a_commit_whose_answer_never_comes_is_found_out_too(
        self, postgres: PostgresServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transactions, "PATIENCE", 1.0)
        name = urlsplit(fresh_database).path.lstrip("/")
        with Proxy(postgres.port) as proxy:
            url = postgres.url(name, port=proxy.port)
            async with await prepared(url, fresh_database) as app:

                @app.task
                async def book(ctx: Context) -> None:
                    async with ctx.transaction() as conn:
                        await conn.execute(BOOK, f"attempt {ctx.attempt}")
                        proxy.ambush("^commit", Fate.STALL)

                handle = await book.submit_async()
                await work(app)

                assert await handle.status_async() is State.COMPLETED
        assert await bookings(fresh_database) == ["attempt 1"]

    async def test_a_connection_cut_before_the_commit_is_an_ordinary_failure(
        self, postgres: PostgresServer, fresh_database: str
    ) -> None:
        name = urlsplit(fresh_database).path.lstrip("/")
        with Proxy(postgres.port) as proxy:
            url = postgres.url(name, port=proxy.port)
            async with await prepared(url, fresh_database) as app:

                @app.task
                async def book(ctx: Context) -> None:
                    async with ctx.transaction() as conn:
                        await conn.execute(BOOK, f"attempt {ctx.attempt}")
                        if ctx.attempt == 1:
                            proxy.ambush("complete_within", Fate.LOSE_ANSWER)

                handle = await book.submit_async()
                await work(app)

                assert await handle.status_async() is State.COMPLETED
        assert await bookings(fresh_database) == ["attempt 2"]

    async def test_a_worker_that_falls_silent_before_its_commit_holds_nobody_up_for_long(
        self, app: Holdfast, fresh_database: str
    ) -> None:
        store = app.client.store

        @app.task
        async def book() -> None: ...

        handle = await book.submit_async()
        await enlist(app)
        (claim,) = (
            await store.claim(ENLISTED, queues=None, capabilities=frozenset(), limit=1)
        ).claims
        silent = await asyncpg.connect(fresh_database)
        await silent.execute("BEGIN")
        await silent.execute(BOOK, "silent")
        await silent.execute(
            "SELECT holdfast.complete_within($1, $2, $3, 0, 0, $4, NULL, NULL, NULL, NULL, NULL)",
            claim.task_id,
            claim.attempt,
            claim.worker_id,
            b"null",
        )
        began = time.monotonic()

        assert not await store.save([loss(claim)])

        assert 1 < time.monotonic() - began < 15
        assert await handle.status_async() is State.QUEUED
        assert await bookings(fresh_database) == []
        silent.terminate()


ENLISTED: Final = WorkerId("test-worker")


async def enlist(app: Holdfast) -> None:
    await app.client.store.register(worker_info(id=ENLISTED))
