"""Worker tests run on a real store that needs no server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.ports.store import Store
from holdfast.stores.sqlite import SQLiteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with SQLiteStore(tmp_path / "tasks.db") as opened:
        yield opened


@pytest.fixture
def shop(store: Store) -> Workshop:
    return Workshop(store)
