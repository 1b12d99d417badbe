"""A real server on a free port of the loopback, for every test that asks for one.

    def test_it(live_server: LiveServer): ...      on SQLite, in a thread of this process
    def test_it(either_server: LiveServer): ...    on SQLite or on PostgreSQL, which may not matter
    with serve(make_app(url, rate_limit=5)) as s:  an app of the test's own
    def test_it(server_process: StartServer): ...  a process to be measured or killed

`server.client("submit", "read")` is an httpx client with a fresh token of these scopes,
`server.client()` one without, `server.admin` one that may do everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from tests.integration.server.live import LiveServer, ServerProcess, serve
from tests.integration.server.shop import make_app


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tasks.db"


@pytest.fixture
def live_server(sqlite_url: str) -> Iterator[LiveServer]:
    """A server on SQLite; types it does not know are welcome on the queue `js`."""
    with serve(make_app(sqlite_url, open_queues="js")) as server:
        yield server


@pytest.fixture
def either_server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """Half of the tests get SQLite and half PostgreSQL, always the same: what HTTP does is no
    business of the store's, and what the store does is tried by the conformance suites.
    """
    fixture = ("sqlite_url", "fresh_schema")[crc32(request.node.name.encode()) % 2]
    with serve(make_app(request.getfixturevalue(fixture), open_queues="js")) as server:
        yield server


StartServer = Callable[..., ServerProcess]


@pytest.fixture
def server_process() -> StartServer:
    """`with server_process(url, HOLDFAST_MAX_BODY="1MiB") as server: …`"""
    return ServerProcess
