"""One database for all tests of this folder, emptied for each: making one takes a second."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator

import pytest
from tests.kit.servers.postgres import PostgresServer

from holdfast.stores.postgres.store import PostgresStore

EMPTY = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables
        WHERE schemaname = 'holdfast' AND tablename <> 'migration' LOOP
        EXECUTE format('DELETE FROM holdfast.%I', name);
    END LOOP;
END $$
"""


@pytest.fixture(scope="session")
def _database_of_dispatch(postgres: PostgresServer) -> Iterator[str]:
    """One for each test process, with its schema."""
    name = f"dispatch_{secrets.token_hex(6)}"
    asyncio.run(PostgresStore(postgres.create_database(name)).migrate())
    yield name
    postgres.drop_database(name)


@pytest.fixture
def fresh_database(postgres: PostgresServer, _database_of_dispatch: str) -> str:
    """The URL of a database of this test alone, with the schema and without any task."""
    postgres.sql(EMPTY, database=_database_of_dispatch)
    return postgres.url(_database_of_dispatch)
