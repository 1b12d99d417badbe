"""`keep=False`: a task is forgotten once it has succeeded, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast, TaskNotFound
from holdfast.core.task import State
from holdfast.testing.eventually import eventually
from holdfast.worker.maintenance import forgetter


@pytest.fixture(params=["sqlite", "fresh_schema", "fresh_mongo"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/t.db"
    return str(request.getfixturevalue(request.param))


@pytest.fixture
async def app(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Holdfast]:
    monkeypatch.setattr(forgetter, "KEPT_FOR", 0.0)
    monkeypatch.setattr(forgetter, "LOOK_EVERY", 0.05)
    async with Holdfast(url=url) as app:
        app.task(name="ping", keep=False)(lambda: "pong")
        app.task(name="fail", keep=False, max_retries=0)(lambda: 1 / 0)
        app.task(name="plain")(lambda: "kept")
        yield app


async def is_gone(app: Holdfast, task_id: str) -> bool:
    try:
        await app.get_async(task_id)
    except TaskNotFound:
        return True
    return False


async def test_what_succeeded_is_forgotten_and_failures_and_other_tasks_are_kept(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetter, "SWEEP_EVERY", 1e9)
    working = asyncio.create_task(app.run_worker())
    handles = [await app.submit_by_name_async(name, {}) for name in ("fail", "plain", "ping")]
    await eventually(lambda: is_gone(app, handles[2].id), within=60)
    working.cancel()
    await asyncio.wait({working})

    left = [(await handle.task_async()).state for handle in handles[:2]]
    assert left == [State.DEAD_LETTER, State.COMPLETED]
    assert (await app.stats_async()).states[State.COMPLETED] == 1


async def test_what_a_worker_left_behind_is_forgotten_by_the_next_or_by_a_server(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetter, "KEPT_FOR", 1e9)
    left = await app.submit_by_name_async("ping", {})
    await app.run_worker(burst=True)
    assert await left.result_async() == "pong"

    monkeypatch.setattr(forgetter, "KEPT_FOR", 0.0)
    maintaining = asyncio.create_task(app.maintain())
    await eventually(lambda: is_gone(app, left.id), within=60)
    maintaining.cancel()
    await asyncio.wait({maintaining})
