"""MongoDB keeps every promise.

Which server that is, `tests.kit.servers.mongo` says. One database serves all tests of a
process and is emptied in between: what costs is making indexes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
from pymongo import MongoClient
from tests.kit.servers.mongo import GivenMongo, MongoServer

from holdfast.ports.store import Store
from holdfast.stores.mongo.connections import NOUNS
from holdfast.stores.mongo.schema import BOARD, EMPTY_BOARD
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.suites import StoreConformance
from holdfast.testing.suites.base import OpenAnother

REAL = "MONGODB_URL" in os.environ
SHARED = "shared"
"""The schema of the tests with processes of their own."""


@pytest.fixture(scope="module")
def database(mongo_server: MongoServer | GivenMongo) -> Iterator[str]:
    name = f"conformance_{secrets.token_hex(4)}"
    yield (url := mongo_server.url(name))
    client: MongoClient[dict[str, object]] = MongoClient(url)
    with client:
        client.drop_database(name)


@pytest.fixture(scope="module")
def broom() -> Iterator[dict[str, MongoClient[dict[str, object]]]]:
    """Clients that empty databases, by URL."""
    clients: dict[str, MongoClient[dict[str, object]]] = {}
    yield clients
    for client in clients.values():
        client.close()


class TestMongo(StoreConformance):
    """Less of what only counts by the thousand, unless the server is a real one."""

    dose = 1.0 if REAL else 0.2
    backlog = 10_000 if REAL else 300
    slots = 250 if REAL else 10
    drained = 2000 if REAL else 150

    @pytest.fixture
    def swept(
        self, database: str, broom: dict[str, MongoClient[dict[str, object]]]
    ) -> MongoClient[dict[str, object]]:
        """The database as new, but for its indexes."""
        if database not in broom:
            broom[database] = MongoClient(database)
        _sweep(broom[database], "holdfast")
        return broom[database]

    @pytest.fixture
    async def store(
        self, database: str, clock: FakeClock, swept: MongoClient[dict[str, object]]
    ) -> AsyncIterator[Store]:
        async with MongoStore(database, clock=clock) as store:
            yield store

    @pytest.fixture
    async def open_another(self, database: str, clock: FakeClock) -> AsyncIterator[OpenAnother]:
        async with AsyncExitStack() as handles:

            async def open_another() -> Store:
                return await handles.enter_async_context(MongoStore(database, clock=clock))

            yield open_another

    @pytest.fixture
    def process_url(self, database: str, swept: MongoClient[dict[str, object]]) -> str:
        _sweep(swept, SHARED)
        return f"{database}?schema={SHARED}"


def _sweep(client: MongoClient[dict[str, object]], schema: str) -> None:
    database = client.get_default_database()
    board = database[f"{schema}.state"]
    if board.find_one({"_id": BOARD}) is None:
        return
    for noun in NOUNS:
        if noun != "state":
            database[f"{schema}.{noun}"].delete_many({})
    board.replace_one({"_id": BOARD}, EMPTY_BOARD)
