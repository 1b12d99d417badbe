"""Real servers for every test that asks for one, from wheels that `scripts/setup test` installs.

    def test_it(postgres: PostgresServer): ...       one PostgreSQL 18 for the whole session
    def test_it(postgres16: PostgresServer): ...     and one PostgreSQL 16
    def test_it(fresh_database: str): ...            the URL of an empty database on 18 (0.1 s)
    def test_it(fresh_schema: str): ...              the same within a shared database (0.01 s)
    def test_it(own_postgres: PostgresServer): ...   a server to stop, break and restart (1 s)
    def test_it(mongo_server: Mongo): ...            one MongoDB, a replica set, for the session
    def test_it(fresh_mongo: str): ...               the URL of an empty database there
    def test_it(own_mongo: MongoServer): ...         a server to stop, break and restart (1 s)
    def test_it(redis_url: str): ...                 one Redis for the whole session, or `REDIS_URL`
    def test_it(redis_server: RedisServer): ...      the former; leave it running, and its keys
    def test_it(own_redis: RedisServer): ...         a server to pause, kill and flush (0.1 s)
    async def test_it(browser_page: Page): ...       an empty page of a real browser (1 s)

A server that cannot be had fails the tests that need it, and says what to do: a promise that was
not tested is no promise.
"""

from __future__ import annotations

import gc
import os
import secrets
import signal
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol

import hypothesis
import pytest
from tests.kit.browser import visiting
from tests.kit.servers.account import ServerError
from tests.kit.servers.binaries import Version
from tests.kit.servers.mongo import GivenMongo, MongoServer
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.redis import RedisServer
from tests.kit.servers.session import SharedServers
from tests.spreading import spread

if TYPE_CHECKING:
    from playwright.async_api import Page

hypothesis.settings.register_profile(
    "busy",
    hypothesis.settings.default,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("busy")  # no test judges how long something takes
SERVERS = pytest.StashKey[SharedServers]()
Mongo = MongoServer | GivenMongo


class Node(Protocol):
    """What xdist shows of a worker process that it is about to start; xdist has no types."""

    config: pytest.Config
    workerinput: dict[str, object]


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what runs in the background with Ctrl-C ignored, and children inherit that;
    # they do not inherit a handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    given = getattr(config, "workerinput", None)
    config.stash[SERVERS] = (
        SharedServers.at(given["servers"]) if given else SharedServers.of_this_process()
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = spread(items, "acceptance")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Node) -> None:
    node.workerinput["servers"] = node.config.stash[SERVERS].address


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[SERVERS].close()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> PostgresServer:
    """PostgreSQL 18, shared by the session. Leave it running."""
    return _shared(request, 18)


@pytest.fixture(scope="session")
def postgres16(request: pytest.FixtureRequest) -> PostgresServer:
    """PostgreSQL 16, shared by the session. Leave it running."""
    return _shared(request, 16)


@pytest.fixture
def fresh_database(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty database of this test alone."""
    name = f"test_{secrets.token_hex(6)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def _database_of_schemas(postgres: PostgresServer) -> str:
    """One database for each test process."""
    name = f"schemas_{secrets.token_hex(6)}"
    postgres.create_database(name)
    return name


@pytest.fixture
def fresh_schema(postgres: PostgresServer, _database_of_schemas: str) -> Iterator[str]:
    """A URL whose schema (`?schema=…`) is this test's alone and does not exist yet."""
    name = f"test_{secrets.token_hex(6)}"
    yield f"{postgres.url(_database_of_schemas)}?schema={name}"
    postgres.sql(
        f'SET client_min_messages = warning; DROP SCHEMA IF EXISTS "{name}" CASCADE',
        database=_database_of_schemas,
    )


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """PostgreSQL 18 of this test alone, to be stopped, broken and restarted."""
    try:
        server = PostgresServer().start()
    except ServerError as problem:
        pytest.fail(str(problem))
    with server:
        yield server


@pytest.fixture(scope="session")
def mongo_server(request: pytest.FixtureRequest) -> Mongo:
    """MongoDB, shared by the session. Leave it running."""
    try:
        return request.config.stash[SERVERS].mongo()
    except ServerError as problem:
        pytest.fail(str(problem))


@pytest.fixture
def fresh_mongo(mongo_server: Mongo) -> Iterator[str]:
    """The URL of an empty database of this test alone."""
    from pymongo import MongoClient

    name = f"test_{secrets.token_hex(6)}"
    yield (url := mongo_server.url(name))
    client: MongoClient[dict[str, object]] = MongoClient(url)
    with client:
        client.drop_database(name)


@pytest.fixture
def own_mongo() -> Iterator[MongoServer]:
    """MongoDB of this test alone, to be stopped, broken and restarted.

    The driver leaves its socket to the garbage collector if it is interrupted while it connects.
    """
    warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
    try:
        server = MongoServer().start()
    except ServerError as problem:
        pytest.fail(str(problem))
    with server:
        yield server
    gc.collect()


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest) -> RedisServer:
    """Redis, shared by the session. Leave it running."""
    try:
        return request.config.stash[SERVERS].redis()
    except ServerError as problem:
        pytest.fail(str(problem))


@pytest.fixture(scope="session")
def redis_url(request: pytest.FixtureRequest) -> str:
    """Where to find a Redis: that of `REDIS_URL`, or the session's."""
    given = os.environ.get("REDIS_URL")
    if given:
        return given
    server: RedisServer = request.getfixturevalue("redis_server")
    return server.url


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """Redis of this test alone, to be paused, killed and flushed."""
    try:
        server = RedisServer().start()
    except ServerError as problem:
        pytest.fail(str(problem))
    with server:
        yield server


def _shared(request: pytest.FixtureRequest, version: Version) -> PostgresServer:
    try:
        return request.config.stash[SERVERS].postgres(version)
    except ServerError as problem:
        pytest.fail(str(problem))


@pytest.fixture
async def browser_page() -> AsyncIterator[Page]:
    """A page in Chromium. The test fails if the page asks other machines for anything, or if one of
    its scripts fails.
    """
    async with AsyncExitStack() as stack:
        try:
            visit = await stack.enter_async_context(visiting())
        except ServerError as problem:
            pytest.fail(str(problem))
        yield visit.page
        visit.check()
