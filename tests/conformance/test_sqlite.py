"""The SQLite store keeps every promise of the port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from holdfast.ports.store import Store
from holdfast.stores.sqlite.store import SQLiteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.suites import StoreConformance
from holdfast.testing.suites.base import OpenAnother


class TestSQLiteStore(StoreConformance):
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "tasks.db"

    @pytest.fixture
    async def store(self, path: Path, clock: FakeClock) -> AsyncIterator[Store]:
        async with SQLiteStore(path, clock=clock) as store:
            yield store

    @pytest.fixture
    async def open_another(self, path: Path, clock: FakeClock) -> AsyncIterator[OpenAnother]:
        async with AsyncExitStack() as handles:

            async def open_another() -> Store:
                return await handles.enter_async_context(SQLiteStore(path, clock=clock))

            yield open_another

    @pytest.fixture
    def process_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'shared.db'}"
