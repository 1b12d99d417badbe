"""A store of the last release, with tasks in every state: once in a file, once in a database."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import asyncpg
import pytest

from holdfast.ports.store import Store
from holdfast.stores.postgres.queries import queries
from holdfast.stores.sqlite.schema import migrations
from holdfast.testing.clock import FakeClock
from holdfast.wiring import open_store

HERE = Path(__file__).parent
TOLD = json.loads((HERE / "release.json").read_text())
"""What the last release itself told of its tasks and workers."""
SQLITE_VERSION, POSTGRES_VERSION = 3, 4
"""The schema of the last release."""


@dataclass
class OldStore:
    """Where it is, and the clock that has stood still since."""

    url: str
    clock: FakeClock = field(
        default_factory=lambda: FakeClock(datetime.fromisoformat(TOLD["now"]["is"]))
    )

    def store(self) -> Store:
        return open_store(self.url, self.clock)

    @asynccontextmanager
    async def migrated(self) -> AsyncIterator[Store]:
        store = self.store()
        assert await store.migrate()
        async with store:
            yield store


@pytest.fixture
def sqlite(tmp_path: Path) -> OldStore:
    path = tmp_path / "holdfast.db"
    with closing(sqlite3.connect(path)) as db:
        for version in range(1, SQLITE_VERSION + 1):
            db.executescript(migrations()[version])
        db.executescript("BEGIN;" + (HERE / "release_sqlite.sql").read_text() + "COMMIT;")
    return OldStore(f"sqlite:///{path}")


@pytest.fixture
def postgresql(fresh_database: str) -> OldStore:
    asyncio.run(_fill(fresh_database))
    return OldStore(fresh_database)


async def _fill(url: str) -> None:
    db = await asyncpg.connect(url)
    await db.execute("CREATE SCHEMA holdfast")
    for migration in queries("holdfast").migrations[:POSTGRES_VERSION]:
        await db.execute(migration.sql)
        await db.execute("INSERT INTO holdfast.migration (version) VALUES ($1)", migration.version)
    await db.execute((HERE / "release_postgres.sql").read_text())
    await db.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest) -> OldStore:
    found: OldStore = request.getfixturevalue(request.param)
    return found
