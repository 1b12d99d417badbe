"""An account that is locked out for a while, as when its password is changed: a worker that runs
keeps what it has and goes on; one that starts says what is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from holdfast import Holdfast
from holdfast.errors import StoreRefused
from holdfast.stores.postgres.connections import Connection as Database
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.eventually import eventually


@pytest.fixture
async def db(fresh_database: str) -> AsyncIterator[Database]:
    connection = await asyncpg.connect(fresh_database)
    await connection.execute("CREATE ROLE clerk SUPERUSER LOGIN PASSWORD 'clerk'")
    yield connection
    await connection.execute("DROP OWNED BY clerk; DROP ROLE clerk")
    await connection.close()


def as_clerk(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"clerk:clerk@{host}"))


async def lock_out(db: Database) -> None:
    await db.execute("ALTER ROLE clerk NOLOGIN")
    await db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'clerk'"
    )


async def test_a_worker_that_is_locked_out_keeps_its_results(
    fresh_database: str, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, end = asyncio.Event(), asyncio.Event()
    refused, save = 0, PostgresStore.save

    async def counted(store: PostgresStore, settlements: Any) -> Any:
        nonlocal refused
        try:
            return await save(store, settlements)
        except StoreRefused:
            refused += 1
            raise

    monkeypatch.setattr(PostgresStore, "save", counted)
    async with Holdfast(url=as_clerk(fresh_database), poll="50ms") as app:

        @app.task
        async def work() -> str:
            begun.set()
            await end.wait()
            return "kept"

        handle = await work.submit_async()
        working = asyncio.create_task(app.run_worker())
        try:
            await begun.wait()
            await lock_out(db)
            with pytest.raises(StoreRefused, match="not permitted to log in"):
                await handle.status_async()
            end.set()
            await eventually(lambda: refused)
            await db.execute("ALTER ROLE clerk LOGIN")

            async with asyncio.timeout(10):
                assert await handle.result_async() == "kept"
            assert len((await handle.history_async()).attempts) == 1
        finally:
            await db.execute("ALTER ROLE clerk LOGIN")
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working


async def test_a_worker_that_starts_with_a_wrong_account_says_so(
    fresh_database: str, db: Database
) -> None:
    await lock_out(db)
    async with asyncio.timeout(10):
        with pytest.raises(StoreRefused, match="Check the URL, the account and its rights"):
            async with Holdfast(url=as_clerk(fresh_database)) as app:
                await app.run_worker()
