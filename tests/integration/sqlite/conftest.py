"""A SQLite store in a fresh file, and what tests need to look behind it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.core.task import WorkerId
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.suites.base import enlist


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(path: Path, clock: FakeClock) -> AsyncIterator[SQLiteStore]:
    async with SQLiteStore(path, clock=clock) as store:
        yield store


@pytest.fixture
async def worker(store: SQLiteStore) -> WorkerId:
    return await enlist(store)


@pytest.fixture
def outside(store: SQLiteStore, path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of somebody else to the same file."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
        yield db


async def statements(store: SQLiteStore) -> list[str]:
    """Everything the writer executes from now on."""
    log: list[str] = []
    await store._write(lambda unit: unit.db.set_trace_callback(log.append))
    log.clear()
    return log
