"""A poll that waits in one server process is woken by a submit to another, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.testing.eventually import eventually

SOON = 5.0


@pytest.fixture(params=["sqlite", "postgres", "mongo"])
async def servers(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[Holdfast, Holdfast]]:
    """Two apps on one store, each with a dispatcher of its own, as two processes have."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/tasks.db"
    else:
        kind = "fresh_mongo" if request.param == "mongo" else "fresh_database"
        url = request.getfixturevalue(kind)
    one, other = _app(url), _app(url)
    async with one, other:
        yield one, other
        await one.client.remote.close()


def _app(url: str) -> Holdfast:
    app = Holdfast(url=url, poll="30s")

    @app.task(name="double")
    def double(n: int) -> int:
        return 2 * n

    return app


async def test_a_submit_to_one_server_wakes_a_poll_at_another(
    servers: tuple[Holdfast, Holdfast],
) -> None:
    one, other = servers
    remote = one.client.remote
    worker = (await remote.register(capacity=3)).worker_id
    await remote.heartbeat(worker)
    for n in range(3):
        polling = asyncio.create_task(remote.poll(worker, limit=1))
        await eventually(
            lambda: any(one._napper.is_asleep for one in remote._polls._waiting.values())
        )
        await asyncio.sleep(1.0)  # a sleeper looks again for a while

        handle = await other.registry["double"].submit_async(n)

        (claim,) = await asyncio.wait_for(polling, SOON)
        assert claim.task_id == handle.id
