"""`ctx.transaction()` on PostgreSQL: savepoints, constraints, settings, pgbouncer, and patience."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.integration.transactions.bookshops.base import ran, work
from tests.integration.transactions.bookshops.postgres import BOOK, PostgresBookshop
from tests.kit.servers.pgbouncer import PgBouncer
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.proxy import Fate, Proxy

from holdfast import Context, Holdfast, State
from holdfast.core.task import WorkerId
from holdfast.stores.postgres import transactions
from holdfast.stores.postgres.connections import COMMAND_TIMEOUT
from holdfast.testing.factories import loss, worker_info


@pytest.fixture
def bookshop(postgres_bookshop: PostgresBookshop) -> PostgresBookshop:
    return postgres_bookshop


async def test_savepoints_are_the_handlers_business(
    app: Holdfast, bookshop: PostgresBookshop
) -> None:
    @app.task
    async def book(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await bookshop.book(conn, "ada")
            with pytest.raises(asyncpg.NotNullViolationError):
                async with conn.transaction():
                    await conn.execute(BOOK, None)

    handle = await ran(app, book)

    assert await handle.status_async() is State.COMPLETED
    assert bookshop.bookings() == ["ada"]


async def test_a_constraint_that_fails_at_commit_fails_the_attempt(
    app: Holdfast, bookshop: PostgresBookshop
) -> None:
    bookshop.tell(
        "CREATE TABLE IF NOT EXISTS part (whole int UNIQUE, of int REFERENCES part (whole)"
        " DEFERRABLE INITIALLY DEFERRED)"
    )

    @app.task(max_retries=0)
    async def book(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute("INSERT INTO part VALUES (1, 2)")

    handle = await ran(app, book)

    task = await handle.task_async()
    assert task.state is State.DEAD_LETTER
    assert task.error is not None
    assert task.error.type == "ForeignKeyViolationError"


async def test_what_a_handler_sets_is_not_seen_by_the_next(app: Holdfast) -> None:
    seen: list[str] = []

    @app.task
    async def book(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            seen.append(await conn.fetchval("SELECT current_setting('search_path')"))
            await conn.execute("SET search_path = pg_catalog")

    await app.submit_many_async([book.call(), book.call()])
    await work(app, concurrency=1)

    assert seen == ['"$user", public'] * 2


async def test_a_timeout_inside_a_statement_rolls_back_and_frees_the_slot(
    app: Holdfast, bookshop: PostgresBookshop
) -> None:
    @app.task(max_retries=0)
    async def book(ctx: Context, seconds: float) -> None:
        async with ctx.transaction() as conn:
            await bookshop.book(conn, str(seconds))
            await conn.execute("SELECT pg_sleep($1)", seconds)

    slow = await book.options(timeout=0.3).submit_async(30.0)
    quick = await book.submit_async(0.0)
    began = time.monotonic()
    await work(app, concurrency=1)

    assert time.monotonic() - began < 10
    assert (await slow.task_async()).reason == "timeout"
    assert await quick.status_async() is State.COMPLETED
    assert bookshop.bookings() == ["0.0"]


async def test_it_works_through_pgbouncer(
    postgres: PostgresServer, bookshop: PostgresBookshop
) -> None:
    name = urlsplit(bookshop.url).path.lstrip("/")
    with PgBouncer(postgres, size=5) as bouncer:
        async with bookshop.app(f"{bouncer.url(name)}?pgbouncer=true") as app:
            bookshop.furnish()

            @app.task
            async def book(ctx: Context, n: int) -> None:
                async with ctx.transaction() as conn:
                    await bookshop.book(conn, str(n))

            await app.submit_many_async([book.call(n) for n in range(20)])
            await work(app)

            assert (await app.stats_async()).states[State.COMPLETED] == 20
    assert len(bookshop.bookings()) == 20


async def test_a_commit_whose_answer_never_comes_is_found_out_too(
    bookshop: PostgresBookshop, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "PATIENCE", 1.0)
    async with bookshop.through(proxy) as app:
        bookshop.furnish()

        @app.task
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await bookshop.book(conn, f"attempt {ctx.attempt}")
                proxy.ambush(bookshop.commit, Fate.STALL)

        handle = await ran(app, book)

        assert await handle.status_async() is State.COMPLETED
    assert bookshop.bookings() == ["attempt 1"]


async def test_a_worker_that_falls_silent_before_its_commit_holds_nobody_up_for_long(
    app: Holdfast, bookshop: PostgresBookshop
) -> None:
    store, worker = app.client.store, WorkerId("test-worker")

    @app.task
    async def book() -> None: ...

    handle = await book.submit_async()
    await store.register(worker_info(id=worker))
    (claim,) = (await store.claim(worker, queues=None, capabilities=frozenset(), limit=1)).claims
    silent = await asyncpg.connect(bookshop.url)
    await silent.execute("BEGIN")
    await bookshop.book(silent, "silent")
    await silent.execute(
        "SELECT holdfast.complete_within($1, $2, $3, 0, 0, $4, NULL, NULL, NULL, NULL, NULL)",
        claim.task_id,
        claim.attempt,
        claim.worker_id,
        b"null",
    )
    assert await silent.fetchval("SHOW idle_in_transaction_session_timeout") == "5s"
    assert COMMAND_TIMEOUT > 5 + 1, "who waits for it must have more patience"
    began = time.monotonic()
    await silent.execute("SET LOCAL idle_in_transaction_session_timeout = '500ms'")

    assert not await store.save([loss(claim)])

    assert 0.5 <= time.monotonic() - began < 10
    assert await handle.status_async() is State.QUEUED
    assert bookshop.bookings() == []
    silent.terminate()
