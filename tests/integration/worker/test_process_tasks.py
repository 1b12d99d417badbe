"""The whole of it: an app, a worker with its own heartbeat, tasks in processes of their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Holdfast
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cause, State, TaskId
from holdfast.testing.eventually import eventually
from holdfast.worker.liveness import Liveness, liveness
from holdfast.worker.loading import load_app

APP = """
import os, signal, time
from holdfast import Context
from holdfast.app import Holdfast

app = Holdfast(url="sqlite:///{place}/tasks.db", retry_base=0.01, heartbeat=0.2, lease=5)


@app.task(executor="process")
def where() -> int:
    return os.getpid()


@app.task(executor="process", timeout=0.5, max_retries=0)
def stubborn(file: str) -> None:
    open(file, "w").write(str(os.getpid()))
    while True:
        try:
            time.sleep(3600)
        except BaseException:
            pass


@app.task(executor="process")
def split(ctx: Context, n: int) -> int:
    if n:
        ctx.submit_child(split, n - 1)
    return n


@app.task(executor="process", max_retries=0)
def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Holdfast]:
    file = tmp_path / "shop.py"
    file.write_text(APP.format(place=tmp_path))
    loaded = load_app(f"{file}:app")
    assert isinstance(loaded, Holdfast)
    async with loaded:
        yield loaded


async def state_of(app: Holdfast, task: str) -> State:
    found = await app.client.store.get(TaskId(task))
    assert found is not None
    return found.state


async def test_tasks_run_time_out_and_die_in_their_own_processes(
    app: Holdfast, tmp_path: Path
) -> None:
    tasks = app.registry
    fine = await tasks["shop.where"].options().submit_async()
    stuck = await tasks["shop.stubborn"].options().submit_async(str(tmp_path / "pid"))
    poison = await tasks["shop.dies"].options().submit_async()
    worker = app.worker(app_spec=f"{tmp_path / 'shop.py'}:app", concurrency=3)
    running = asyncio.create_task(worker.run())
    try:
        await eventually(lambda: is_done(app), within=30)
    finally:
        worker.stop()
        await asyncio.wait_for(running, 10)

    assert await state_of(app, fine.id) is State.COMPLETED
    assert await state_of(app, stuck.id) is State.DEAD_LETTER
    assert await state_of(app, poison.id) is State.DEAD_LETTER
    pid = int((tmp_path / "pid").read_text())
    assert liveness(pid) is Liveness.GONE
    history = await app.client.store.history(TaskId(poison.id))
    assert history is not None
    assert [one.ended for one in history.attempts] == [AttemptEnd.WORKER_LOST] * 3
    assert history.attempts[1].cause is Cause.WORKER_LOST


async def is_done(app: Holdfast) -> bool:
    unfinished = frozenset({State.QUEUED, State.RUNNING, State.RETRYING})
    return await app.client.store.count(TaskFilter(states=unfinished), limit=1) == 0


async def test_a_handler_that_blocks_the_loop_does_not_cost_the_worker_its_lease(
    app: Holdfast,
) -> None:
    @app.task(name="block")
    async def block() -> str:
        time.sleep(1.5)  # noqa: ASYNC251 - that is the point
        return "alive"

    task = await block.submit_async()
    worker = app.worker(lease=0.9, heartbeat=0.2)
    running = asyncio.create_task(worker.run())
    first = worker.id
    try:
        await eventually(lambda: is_done(app), within=10)
    finally:
        worker.stop()
        await asyncio.wait_for(running, 10)

    found = await app.client.store.get(TaskId(task.id))
    assert found is not None
    assert (found.state, found.attempt, worker.id) == (State.COMPLETED, 1, first)
    [info] = await app.client.store.workers()
    assert info.beats >= 5, "somebody else must have beaten while the loop was blocked"


async def test_a_process_submits_children_and_its_task_ends_after_them(
    app: Holdfast, tmp_path: Path
) -> None:
    task = await app.registry["shop.split"].submit_async(2)

    await app.run_worker(burst=True, app_spec=f"{tmp_path / 'shop.py'}:app")

    assert await task == 2
    (child,) = await app.client.ended_children(task.id)
    assert (child.value, child.state) == (1, State.COMPLETED)
