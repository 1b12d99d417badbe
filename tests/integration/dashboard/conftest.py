"""A served dashboard for every test that asks for one.

def test_it(dashboard: LiveServer): ...        on SQLite or on PostgreSQL, always the same
def test_it(both: LiveServer): ...             once on each
async def test_it(ops: Page): ...              a browser that is logged in to `dashboard`
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from playwright.async_api import Page
from tests.integration.dashboard.web import log_in
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast.dashboard.app import create_app


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tasks.db"


@pytest.fixture
def dashboard(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """Half of the tests get SQLite and half PostgreSQL."""
    fixture = ("sqlite_url", "fresh_schema")[crc32(request.node.name.encode()) % 2]
    yield from _served(request.getfixturevalue(fixture))


@pytest.fixture(params=["sqlite_url", "fresh_schema"], ids=["sqlite", "postgres"])
def both(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """One after the other."""
    yield from _served(request.getfixturevalue(request.param))


@pytest.fixture
async def ops(dashboard: LiveServer, browser_page: Page) -> Page:
    """A browser whose user may do everything."""
    await log_in(browser_page, dashboard, "admin")
    return browser_page


def _served(url: str) -> Iterator[LiveServer]:
    with serve(make_app(url, open_queues="js"), make=create_app) as server:
        yield server
