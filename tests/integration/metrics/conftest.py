"""Every store, with a clock that tests can advance or with a real one, and workers on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.worker.workshop import Workshop
from tests.kit.at_work import app, url, working

from holdfast.ports.clock import Clock
from holdfast.ports.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.mongo.store import MongoStore
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing.clock import FakeClock

__all__ = ["app", "url", "working"]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def _store(kind: str, request: pytest.FixtureRequest, clock: Clock | None) -> Store:
    path: Path = request.getfixturevalue("tmp_path")
    match kind:
        case "memory":
            return MemoryStore(clock=clock)
        case "sqlite":
            return SQLiteStore(path / "tasks.db", clock=clock)
        case "postgres":
            return PostgresStore(request.getfixturevalue("fresh_schema"), clock=clock)
        case _:
            return MongoStore(request.getfixturevalue("fresh_mongo"), clock=clock)


KINDS = ["memory", "sqlite", "postgres", "mongo"]


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    async with _store(request.param, request, None) as opened:
        yield opened


@pytest.fixture(params=KINDS)
async def timed(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """A store whose time is that of `clock`."""
    async with _store(request.param, request, clock) as opened:
        yield opened


@pytest.fixture
def shop(store: Store) -> Workshop:
    return Workshop(store)
