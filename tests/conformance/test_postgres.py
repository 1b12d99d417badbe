"""PostgreSQL 18 keeps every promise of the port; 16 those that stand on its plans and its locks.

One database per test process; what a test left in its tables is deleted before the next one, which
takes a hundredth of the time that a new schema would.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import asyncpg
import pytest
from tests.kit.servers.postgres import PostgresServer

from holdfast.ports.store import Store
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.suites import (
    ClaimSuite,
    GateSuite,
    LockSuite,
    OrderSuite,
    ShareSuite,
    StoreConformance,
    StoreSuite,
    UnlockSuite,
)
from holdfast.testing.suites.base import OpenAnother

SHARED = "shared"
"""The schema of the tests with processes of their own."""

_TABLES = (
    "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relispartition "
    "AND c.relname <> 'migration'"
)
_WIPES: dict[tuple[str, str], str] = {}
"""How to empty the tables, by database and schema."""


@pytest.fixture(scope="module")
def database18(postgres: PostgresServer) -> Iterator[str]:
    yield from _database(postgres)


@pytest.fixture(scope="module")
def database16(postgres16: PostgresServer) -> Iterator[str]:
    yield from _database(postgres16)


def _database(server: PostgresServer) -> Iterator[str]:
    name = f"conformance_{secrets.token_hex(4)}"
    yield server.create_database(name)
    server.drop_database(name)


async def _empty(url: str, schema: str) -> None:
    """Make a store as new. Its tables are few and small, so deleting is the fastest way."""
    if (url, schema) not in _WIPES:
        async with PostgresStore(url, schema=schema):
            pass
    connection = await asyncpg.connect(url)
    try:
        if (url, schema) not in _WIPES:
            tables = await connection.fetch(_TABLES, schema)
            _WIPES[url, schema] = ";".join(f'DELETE FROM "{schema}"."{t[0]}"' for t in tables)
        await connection.execute(_WIPES[url, schema])
    finally:
        await connection.close()


class OnPostgres(StoreSuite):
    @pytest.fixture
    def database(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    async def store(self, database: str, clock: FakeClock) -> AsyncIterator[Store]:
        await _empty(database, "holdfast")
        async with PostgresStore(database, clock=clock) as store:
            yield store

    @pytest.fixture
    async def open_another(self, database: str, clock: FakeClock) -> AsyncIterator[OpenAnother]:
        async with AsyncExitStack() as handles:

            async def open_another() -> Store:
                return await handles.enter_async_context(PostgresStore(database, clock=clock))

            yield open_another

    @pytest.fixture
    async def process_url(self, database: str) -> str:
        await _empty(database, SHARED)
        return f"{database}?schema={SHARED}"


class TestPostgres18(OnPostgres, StoreConformance):
    @pytest.fixture
    def database(self, database18: str) -> str:
        return database18


class TestPostgres16(
    OnPostgres,
    ClaimSuite,
    OrderSuite,
    LockSuite,
    UnlockSuite,
    GateSuite,
    ShareSuite,
):
    @pytest.fixture
    def database(self, database16: str) -> str:
        return database16
