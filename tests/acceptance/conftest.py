"""Stages for the tests of this folder, on a file unless a test asks for other stores.

@on_every_store                          # SQLite, PostgreSQL, MongoDB
@on_sql                                  # only the first two
def test_it(stage: Stage) -> None: ...

What every store must do is tried on each by the conformance suites. Here a test asks for more than
one only where what happens outside of a store depends on it: kills, stops, transactions.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.acceptance.stage import Stage
from tests.kit.servers.mongo import MongoServer
from tests.kit.servers.postgres import PostgresServer

MakeStage = Callable[..., Stage]
MakePlace = Callable[[], dict[str, str]]

STORES = ("sqlite", "postgres", "mongo")

on_every_store = pytest.mark.parametrize("store", STORES, indirect=True)
on_sql = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
on_postgres = pytest.mark.parametrize("store", ["postgres"], indirect=True)
on_own_postgres = pytest.mark.parametrize("store", ["own_postgres"], indirect=True)
on_own_mongo = pytest.mark.parametrize("store", ["own_mongo"], indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Processes that start and die side by side take their time on a busy machine."""
    for item in items:
        if item.get_closest_marker("acceptance") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[MakePlace]:
    """Makes a fresh store, and says the settings that lead to it; none for a file in the stage's
    folder. `redis` is PostgreSQL with Redis for the wake-ups.
    """
    name: str = getattr(request, "param", os.environ.get("HOLDFAST_TEST_STORE", "sqlite"))
    match name:
        case "sqlite":
            yield dict
        case "mongo" if "MONGODB_URL" in os.environ:
            database: str = request.getfixturevalue("fresh_mongo")
            yield lambda: {"url": f"{database}?schema=shop_{secrets.token_hex(4)}"}
        case "mongo" | "own_mongo":
            # The test server that all share answers nobody while a storm keeps it busy.
            server: MongoServer = request.getfixturevalue("own_mongo")
            yield lambda: {"url": f"{server.url('shop')}?schema=shop_{secrets.token_hex(4)}"}
        case "redis":
            more = {"redis_url": request.getfixturevalue("redis_server").url}
            yield from _databases(request.getfixturevalue("postgres"), more)
        case _:
            yield from _databases(request.getfixturevalue(name), {})


def _databases(server: PostgresServer, more: dict[str, str]) -> Iterator[MakePlace]:
    made: list[str] = []

    def make() -> dict[str, str]:
        made.append(f"shop_{secrets.token_hex(4)}")
        return {"url": server.create_database(made[-1]), **more}

    yield make
    for database in made:
        server.start().drop_database(database)


@pytest.fixture
def make_stage(tmp_path: Path, store: MakePlace) -> Iterator[MakeStage]:
    """Stages with settings of their own; whatever they started dies with the test."""
    stages: list[Stage] = []

    def make(**settings: str) -> Stage:
        folder = tmp_path / str(len(stages))
        folder.mkdir()
        stages.append(Stage(folder, **store(), **settings))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """A stage with short times, so that death is noticed soon."""
    return make_stage(lease="2s", heartbeat="0.5s", sweep="0.5s", poll="0.5s", crash_limit="3")
