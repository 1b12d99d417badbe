"""Submitting inside one's own PostgreSQL transaction, through every library people use for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg
import psycopg.rows
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from tests.integration.transactions.bookshops.postgres import PostgresBookshop
from tests.kit.servers.pgbouncer import PgBouncer
from tests.kit.servers.postgres import PostgresServer

from holdfast import Holdfast, State
from holdfast.definitions.definition import Definition
from holdfast.errors import IdempotencyConflict, InvalidOption

Send = Definition[..., Any, Any]


@pytest.fixture
def bookshop(postgres_bookshop: PostgresBookshop) -> PostgresBookshop:
    return postgres_bookshop


@pytest.fixture
def send(app: Holdfast) -> Send:
    @app.task(name="send")
    def send(customer: str) -> str:
        return customer

    return send


BOOK = "INSERT INTO booking (customer) VALUES ('ada')"


# -- sync ------------------------------------------------------------------------------------------


@contextmanager
def with_psycopg(url: str) -> Iterator[tuple[Any, Any]]:
    with psycopg.connect(url) as connection:
        connection.execute(BOOK)
        yield connection, connection


@contextmanager
def with_psycopg_dicts(url: str) -> Iterator[tuple[Any, Any]]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute(BOOK)
        yield connection, connection


@contextmanager
def with_sqlalchemy(url: str) -> Iterator[tuple[Any, Any]]:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(BOOK))
            yield connection, connection
    finally:
        engine.dispose()


@contextmanager
def with_sqlalchemy_session(url: str) -> Iterator[tuple[Any, Any]]:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with Session(engine) as session:
            session.execute(sqlalchemy.text(BOOK))
            yield session, session
    finally:
        engine.dispose()


@contextmanager
def with_django(url: str) -> Iterator[tuple[Any, Any]]:
    import django
    from django.conf import settings

    parts = urlsplit(url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username,
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname,
        "PORT": parts.port,
    }
    if not settings.configured:
        settings.configure(DATABASES={"default": database}, USE_TZ=True)
        django.setup()
    from django.db import connections

    wrapper = connections["default"]
    wrapper.close()
    wrapper.settings_dict.update(database)
    wrapper.set_autocommit(False)
    try:
        with wrapper.cursor() as cursor:
            cursor.execute(BOOK)
        yield wrapper, wrapper
    finally:
        wrapper.rollback()
        wrapper.set_autocommit(True)
        wrapper.close()


SYNC = [with_psycopg, with_psycopg_dicts, with_sqlalchemy, with_sqlalchemy_session, with_django]


@pytest.mark.parametrize("library", SYNC, ids=lambda made: made.__name__)
def test_a_sync_submit_is_seen_at_commit_and_gone_at_rollback(
    app: Holdfast, send: Send, bookshop: PostgresBookshop, library: Any
) -> None:
    with library(bookshop.url) as (connection, transaction):
        handle = send.options(connection=connection, tags=["x"], queue="mail").submit("ada")
        many = app.submit_many([send.call(n) for n in "abc"], connection=connection)
        assert app.count() == 0
        transaction.commit()

    assert handle.created
    assert app.count() == 4
    task = handle.task()
    assert (task.state, task.queue, task.tags) == (State.QUEUED, "mail", ("x",))
    assert json.loads(task.payload) == {"customer": "ada"}
    assert len({each.id for each in many}) == 3

    with library(bookshop.url) as (connection, transaction):
        send.options(connection=connection).submit("nobody")
        transaction.rollback()

    assert app.count() == 4
    assert bookshop.bookings() == ["ada"]


@pytest.mark.parametrize("library", SYNC, ids=lambda made: made.__name__)
def test_a_conflict_leaves_the_callers_sync_transaction_alone(
    app: Holdfast, send: Send, bookshop: PostgresBookshop, library: Any
) -> None:
    first = send.options(idempotency_key="k").submit("ada")

    with library(bookshop.url) as (connection, transaction):
        with pytest.raises(IdempotencyConflict) as raised:
            send.options(connection=connection, idempotency_key="k").submit("bob")
        again = send.options(connection=connection, idempotency_key="k").submit("ada")
        transaction.commit()

    assert (raised.value.key, raised.value.task_id) == ("k", first.id)
    assert (again.id, again.created) == (first.id, False)
    assert bookshop.bookings() == ["ada"]
    assert app.count() == 1


async def test_a_sync_connection_is_refused_by_async_submits(
    send: Send, bookshop: PostgresBookshop
) -> None:
    with (
        with_psycopg(bookshop.url) as (connection, _),
        pytest.raises(InvalidOption, match="synchronous"),
    ):
        await send.options(connection=connection).submit_async("ada")


# -- async -----------------------------------------------------------------------------------------


class _Asyncpg:
    """asyncpg's transactions, with the verbs of the others."""

    def __init__(self, transaction: Any) -> None:
        self.commit = transaction.commit
        self.rollback = transaction.rollback


@asynccontextmanager
async def with_asyncpg(url: str) -> AsyncIterator[tuple[Any, Any]]:
    connection = await asyncpg.connect(url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(BOOK)
        yield connection, _Asyncpg(transaction)
    finally:
        await connection.close()


@asynccontextmanager
async def with_asyncpg_pool(url: str) -> AsyncIterator[tuple[Any, Any]]:
    async with asyncpg.create_pool(url, min_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(BOOK)
        yield connection, _Asyncpg(transaction)


@asynccontextmanager
async def with_psycopg_async(url: str) -> AsyncIterator[tuple[Any, Any]]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute(BOOK)
        yield connection, connection


@asynccontextmanager
async def with_sqlalchemy_async(url: str) -> AsyncIterator[tuple[Any, Any]]:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    async with engine.connect() as connection:
        await connection.execute(sqlalchemy.text(BOOK))
        yield connection, connection
    await engine.dispose()


@asynccontextmanager
async def with_sqlalchemy_async_session(
    url: str, driver: str = "asyncpg"
) -> AsyncIterator[tuple[Any, Any]]:
    engine = create_async_engine(url.replace("postgresql:", f"postgresql+{driver}:"))
    async with AsyncSession(engine) as session:
        await session.execute(sqlalchemy.text(BOOK))
        yield session, session
    await engine.dispose()


@asynccontextmanager
async def with_sqlalchemy_async_psycopg(url: str) -> AsyncIterator[tuple[Any, Any]]:
    async with with_sqlalchemy_async_session(url, "psycopg") as both:
        yield both


ASYNC = [
    with_asyncpg,
    with_asyncpg_pool,
    with_psycopg_async,
    with_sqlalchemy_async,
    with_sqlalchemy_async_session,
    with_sqlalchemy_async_psycopg,
]


@pytest.mark.parametrize("library", ASYNC, ids=lambda made: made.__name__)
async def test_an_async_submit_is_seen_at_commit_and_gone_at_rollback(
    app: Holdfast, send: Send, bookshop: PostgresBookshop, library: Any
) -> None:
    async with library(bookshop.url) as (connection, transaction):
        handle = await send.options(connection=connection, lock="l").submit_async("ada")
        await app.submit_many_async([send.call(n) for n in "abc"], connection=connection)
        assert await app.count_async() == 0
        await transaction.commit()

    assert await app.count_async() == 4
    assert (await handle.task_async()).lock == "l"

    async with library(bookshop.url) as (connection, transaction):
        await send.options(connection=connection).submit_async("nobody")
        await transaction.rollback()

    assert await app.count_async() == 4
    assert bookshop.bookings() == ["ada"]


@pytest.mark.parametrize("library", ASYNC, ids=lambda made: made.__name__)
async def test_a_conflict_leaves_the_callers_async_transaction_alone(
    app: Holdfast, send: Send, bookshop: PostgresBookshop, library: Any
) -> None:
    await send.options(idempotency_key="k").submit_async("ada")

    async with library(bookshop.url) as (connection, transaction):
        with pytest.raises(IdempotencyConflict):
            await send.options(connection=connection, idempotency_key="k").submit_async("bob")
        await transaction.commit()

    assert bookshop.bookings() == ["ada"]


@pytest.mark.parametrize("library", ASYNC, ids=lambda made: made.__name__)
async def test_an_async_connection_is_refused_by_sync_submits(
    send: Send, bookshop: PostgresBookshop, library: Any
) -> None:
    async with library(bookshop.url) as (connection, _):
        with pytest.raises(InvalidOption, match="asynchronous"):
            await asyncio.to_thread(send.options(connection=connection).submit, "ada")


async def test_a_session_may_run_sync_code_that_submits(
    app: Holdfast, send: Send, bookshop: PostgresBookshop
) -> None:
    async with with_sqlalchemy_async_session(bookshop.url) as (session, _):
        await session.run_sync(lambda sync: send.options(connection=sync).submit("ada"))
        await session.commit()

    assert await app.count_async() == 1


# -- what can go wrong -----------------------------------------------------------------------------


async def test_a_database_without_holdfast_is_named_as_such(
    send: Send, postgres: PostgresServer
) -> None:
    connection = await asyncpg.connect(postgres.url("template1"))
    try:
        with pytest.raises(InvalidOption, match="has no Holdfast"):
            await send.options(connection=connection).submit_async("ada")
    finally:
        await connection.close()


async def test_a_connection_to_another_kind_of_database_is_refused(send: Send) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(InvalidOption, match="got one to sqlite"):
        await asyncio.to_thread(send.options(connection=connection).submit, "ada")
    engine.dispose()


async def test_it_works_through_pgbouncer(
    app: Holdfast, send: Send, postgres: PostgresServer, bookshop: PostgresBookshop
) -> None:
    name = urlsplit(bookshop.url).path.lstrip("/")
    with PgBouncer(postgres, size=2) as bouncer:
        connection = await asyncpg.connect(bouncer.url(name), statement_cache_size=0)
        async with connection.transaction():
            await send.options(connection=connection).submit_async("ada")
        await connection.close()

    assert await app.count_async() == 1


async def test_a_submit_in_sql_is_seen_at_commit_and_runs(
    app: Holdfast, send: Send, bookshop: PostgresBookshop
) -> None:
    connection = await asyncpg.connect(bookshop.url)
    async with connection.transaction():
        task_id = await connection.fetchval(
            """SELECT holdfast.submit('send', '{"customer": "ada"}'::jsonb, priority => 'high')"""
        )
        assert await app.count_async() == 0
    with pytest.raises(asyncpg.PostgresError, match="priority"):
        await connection.execute("SELECT holdfast.submit('send', priority => 'hihg')")
    await connection.close()

    async with asyncio.timeout(30):
        await app.run_worker(burst=True)

    assert await app.handle(str(task_id)).result_async() == "ada"


async def test_keys_of_a_submit_in_sql_belong_to_its_owner(
    app: Holdfast, send: Send, bookshop: PostgresBookshop
) -> None:
    owned = send.options(owner="ada", unique_key="u", idempotency_key="i")
    first = await owned.submit_async("ada")
    connection = await asyncpg.connect(bookshop.url)
    ask = "SELECT holdfast.submit('send', owner => $1, unique_key => 'u')"

    hers = await connection.fetchval(ask, "ada")
    others = await connection.fetchval(ask, "bob")
    (row,) = await connection.fetch(
        "SELECT unique_key, idempotency_key FROM holdfast.tasks WHERE id = $1", hers
    )
    await connection.close()

    assert (str(hers), str(others) != first.id) == (first.id, True)
    assert tuple(row) == ("u", "i")
