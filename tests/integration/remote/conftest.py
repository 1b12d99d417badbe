"""Workers over HTTP, without HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.remote.depot import Depot

from holdfast.ports.store import Store
from holdfast.stores.sqlite import SQLiteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with SQLiteStore(tmp_path / "tasks.db") as opened:
        yield opened


@pytest.fixture
async def depot(store: Store) -> AsyncIterator[Depot]:
    depot = Depot(store)
    yield depot
    await depot.close()
