"""Workers on PostgreSQL are woken: none of these could pass by polling, which comes every 30 s."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.kit.servers.pgbouncer import PgBouncer

from holdfast import Holdfast
from holdfast.cli.doctor import _examine
from holdfast.dispatch import sleepers
from holdfast.testing.eventually import eventually

SOON = 5.0
LOOKS = (0.005, 0.02, 0.1)
FAST_ASLEEP = 0.3


@pytest.fixture
async def sleeping(fresh_database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Holdfast]:
    """An app whose worker has nothing to do and is fast asleep."""
    monkeypatch.setattr(sleepers, "REPEATS", LOOKS)  # the last, after 0.5 s, is for slow commits
    app = Holdfast(url=fresh_database, poll="30s")
    define(app)
    async with app, working(app):
        await fast_asleep(fresh_database)
        yield app


@pytest.fixture
async def caller(fresh_database: str) -> AsyncIterator[Holdfast]:
    """Another process, as far as the database can tell."""
    app = Holdfast(url=fresh_database)
    define(app)
    async with app:
        assert await app.client.dispatcher.mode() == "listen"
        yield app


def define(app: Holdfast) -> None:
    @app.task(name="double")
    async def double(n: int) -> int:
        return 2 * n


@asynccontextmanager
async def working(app: Holdfast) -> AsyncIterator[None]:
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def fast_asleep(url: str) -> None:
    """Until a worker has registered, and has looked for the last time before it relies on that."""
    db = await asyncpg.connect(url)

    async def registered() -> bool:
        found: bool = await db.fetchval("SELECT EXISTS (SELECT FROM holdfast.sleeper)")
        return found

    await eventually(registered)
    await db.close()
    await asyncio.sleep(FAST_ASLEEP)  # the last of those looks


async def test_a_submit_elsewhere_wakes_a_worker(sleeping: Holdfast, caller: Holdfast) -> None:
    began = time.monotonic()
    handle = await caller.registry["double"].submit_async(4)

    assert await handle.result_async(timeout=SOON) == 8
    assert time.monotonic() - began < SOON


async def test_a_submit_in_somebodys_transaction_wakes_a_worker_at_its_commit(
    sleeping: Holdfast, caller: Holdfast, fresh_database: str
) -> None:
    db = await asyncpg.connect(fresh_database)
    async with db.transaction():
        handle = await caller.registry["double"].options(connection=db).submit_async(4)
        await asyncio.sleep(0.1)
    await db.close()

    assert await handle.result_async(timeout=SOON) == 8


async def test_a_submit_after_all_connections_broke_wakes_a_worker(
    sleeping: Holdfast, caller: Holdfast, fresh_database: str
) -> None:
    db = await asyncpg.connect(fresh_database)
    await db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    async def both_listen() -> bool:
        modes = [await app.client.dispatcher.mode() for app in (sleeping, caller)]
        return modes == ["listen", "listen"]

    await eventually(both_listen)
    for n in range(2):
        task_id = await db.fetchval(
            "SELECT holdfast.submit('double', jsonb_build_object('n', $1::int))", n
        )
        handle = caller.handle(str(task_id))
        assert await handle.result_async(timeout=SOON) == 2 * n
        await asyncio.sleep(FAST_ASLEEP)
    await db.close()


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "pgbouncer"])
async def test_the_doctor_says_how_workers_are_woken(
    request: pytest.FixtureRequest, fresh_database: str, pooled: bool
) -> None:
    with PgBouncer(request.getfixturevalue("postgres")) as bouncer:
        name = urlsplit(fresh_database).path.lstrip("/")
        url = f"{bouncer.url(name)}?pgbouncer=true" if pooled else fresh_database

        told = [finding.text for finding in await _examine(Holdfast(url=url))]

    expected = "cannot be woken from here" if pooled else "woken by LISTEN/NOTIFY"
    assert any(expected in text for text in told), told
