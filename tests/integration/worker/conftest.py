"""Worker tests run on every store that is here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.ports.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite import SQLiteStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "tasks.db")
    async with made as opened:
        yield opened


@pytest.fixture
def shop(store: Store) -> Workshop:
    return Workshop(store)
