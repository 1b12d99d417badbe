"""One look per task, however many listen."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.client import Client
from holdfast.core.task import TaskId
from holdfast.errors import TaskNotFound
from holdfast.server import watching
from holdfast.server.news import Snapshot
from holdfast.server.watching import Watches
from holdfast.testing.app import MemoryApp
from holdfast.testing.eventually import eventually


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[TaskId]:
    """Every look, as it is made; they follow each other quickly."""
    seen: list[TaskId] = []

    async def counted(client: Client, task_id: TaskId) -> Snapshot:
        seen.append(task_id)
        return await look(client, task_id)

    look = watching.look
    monkeypatch.setattr(watching, "look", counted)
    monkeypatch.setattr(watching, "LOOK_EVERY", 0.01)
    return seen


async def submitted(app: MemoryApp) -> TaskId:
    @app.task(name="f")
    def f() -> int:
        return 7

    return (await f.submit_async()).id


async def test_many_listeners_share_one_watch_and_the_last_one_ends_it(looks: list[TaskId]) -> None:
    async with MemoryApp() as app:
        task_id, watches = await submitted(app), Watches()

        async with watches.on(app.client, task_id) as first:
            async with watches.on(app.client, task_id) as second:
                assert first is second
            assert len(watches) == 1
            await eventually(lambda: len(looks) > 3)
        assert len(watches) == 0
        after = len(looks)
        await asyncio.sleep(0.05)

    assert len(looks) <= after + 1


async def test_a_change_is_told_to_all(looks: list[TaskId]) -> None:
    async with MemoryApp() as app:
        task_id, watches = await submitted(app), Watches()
        async with watches.on(app.client, task_id) as watch:
            change = watch.change

            await app.drain_async()
            await asyncio.wait_for(change.wait(), 5)

            assert watch.latest is not None
            assert watch.latest.is_final
            assert watch.latest.history.attempts[0].ended == "completed"


async def test_a_task_that_is_forgotten_meanwhile_is_told_too(looks: list[TaskId]) -> None:
    async with MemoryApp() as app:
        task_id, watches = await submitted(app), Watches()
        async with watches.on(app.client, task_id) as watch:
            change = watch.change

            await app.cancel_async(task_id)
            await app.discard_async(ids=[task_id])
            await asyncio.wait_for(change.wait(), 5)

            assert watch.latest is None or watch.latest.is_final


async def test_a_task_that_does_not_exist_cannot_be_watched() -> None:
    async with MemoryApp() as app:
        watches = Watches()

        with pytest.raises(TaskNotFound):
            async with watches.on(app.client, TaskId("0197f3c2-8a51-7cc0-9d4e-1b2c3d4e5f60")):
                pass

        assert len(watches) == 0
