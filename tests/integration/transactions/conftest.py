"""`bookshop` is one of each store in turn, `app` the tasks in it. A file about one store says so:

@pytest.fixture
def bookshop(postgres_bookshop: PostgresBookshop) -> PostgresBookshop:
    return postgres_bookshop
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pymongo.common
import pytest
from tests.integration.transactions.bookshops.base import Bookshop, Branch
from tests.integration.transactions.bookshops.mongo import MongoBookshop
from tests.integration.transactions.bookshops.postgres import PostgresBookshop
from tests.integration.transactions.bookshops.sqlite import SQLiteBookshop
from tests.kit.servers.mongo import GivenMongo
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.proxy import Proxy

from holdfast import Holdfast
from holdfast.metrics.keeping import CountsKeeper, MinuteKeeper


@pytest.fixture(params=["sqlite", "postgres", "mongo"])
def bookshop(request: pytest.FixtureRequest) -> Bookshop:
    found: Bookshop = request.getfixturevalue(f"{request.param}_bookshop")
    return found


@pytest.fixture
async def app(bookshop: Bookshop) -> AsyncIterator[Holdfast]:
    async with bookshop.app() as app:
        bookshop.furnish()
        yield app


@pytest.fixture(autouse=True)
def nobody_else_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker writes of its counts would run into an ambush that waits for a handler."""

    async def rest(_: object) -> float:
        return 3600.0

    monkeypatch.setattr(CountsKeeper, "tick", rest)
    monkeypatch.setattr(MinuteKeeper, "tick", rest)


@pytest.fixture
def proxy(request: pytest.FixtureRequest, bookshop: Branch) -> Iterator[Proxy]:
    """A bad network, for `bookshop.through(proxy)`."""
    on_mongo = isinstance(bookshop, MongoBookshop)
    if on_mongo and isinstance(request.getfixturevalue("mongo_server"), GivenMongo):
        pytest.skip("the proxy knows only servers of our own")
    with bookshop.proxy() as proxy:
        yield proxy


@pytest.fixture
def sqlite_bookshop(tmp_path: Path) -> SQLiteBookshop:
    return SQLiteBookshop(f"sqlite:///{tmp_path / 'shop.db'}")


@pytest.fixture
def postgres_bookshop(_database_of_bookings: str) -> PostgresBookshop:
    bookshop = PostgresBookshop(_database_of_bookings)
    bookshop.clear()
    return bookshop


@pytest.fixture(scope="session")
def _database_of_bookings(postgres: PostgresServer) -> str:
    """One database for each test process, emptied for each test."""
    return postgres.create_database(f"bookings_{secrets.token_hex(6)}")


@pytest.fixture
def mongo_bookshop(fresh_mongo: str, hasty_driver: None) -> MongoBookshop:
    return MongoBookshop(fresh_mongo)


@pytest.fixture
def hasty_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a broken connection MongoDB's driver looks for its server only twice a second."""
    monkeypatch.setattr(pymongo.common, "MIN_HEARTBEAT_INTERVAL", 0.02)
