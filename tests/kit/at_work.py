"""Apps on every store, with workers in this very process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast

Working = Callable[..., AbstractAsyncContextManager[None]]


@pytest.fixture(params=["memory", "sqlite", "postgres", "mongo"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "memory":
            return "memory://"
        case "sqlite":
            return f"sqlite:///{tmp_path}/tasks.db"
        case "postgres":
            return str(request.getfixturevalue("fresh_schema"))
        case _:
            return str(request.getfixturevalue("fresh_mongo"))


@pytest.fixture
async def app(url: str) -> AsyncIterator[Holdfast]:
    made = Holdfast(url=url, poll="30s", retry_base="10ms", retry_cap="20ms", drain="5s")
    async with made:
        yield made


@pytest.fixture
def working(app: Holdfast) -> Working:
    """`async with working(): …` has workers at work; they are woken, as looking takes them half a
    minute.
    """

    @asynccontextmanager
    async def at_work(number: int = 1, **settings: Any) -> AsyncIterator[None]:
        workers = [app.worker(**settings) for _ in range(number)]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        try:
            yield
        finally:
            for worker in workers:
                worker.stop()
            await asyncio.gather(*running)

    return at_work
