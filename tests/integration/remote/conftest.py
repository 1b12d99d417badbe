"""Workers over HTTP, on every store, without HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.remote.depot import Depot

from holdfast.ports.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite import SQLiteStore


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with _made(request, tmp_path) as opened:
        yield opened


def _made(request: pytest.FixtureRequest, folder: Path) -> Store:
    match request.param:
        case "memory":
            return MemoryStore()
        case "sqlite":
            return SQLiteStore(folder / "tasks.db")
        case _:
            from holdfast.wiring import open_store

            return open_store(request.getfixturevalue("fresh_schema"))


@pytest.fixture
async def depot(store: Store) -> AsyncIterator[Depot]:
    depot = Depot(store)
    yield depot
    await depot.close()
