"""Batches in a real worker: gathered, run once in one slot, settled one by one, handed back."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast import Batch, BatchContext
from holdfast.app import Holdfast
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cause, State, TaskId
from holdfast.testing.eventually import eventually
from holdfast.worker.loading import load_app

LONG = Batch(max=1000, within=3600)


async def ends_of(shop: Workshop, tasks: list[TaskId]) -> list[AttemptEnd | None]:
    return [attempt.ended for task in tasks for attempt in await shop.attempts(task)]


async def test_a_batch_is_gathered_beyond_the_slots_and_starts_when_it_is_full(
    shop: Workshop,
) -> None:
    ran: list[int] = []

    @shop.task(batch=Batch(max=50, within=3600))
    async def work(items: list[int]) -> list[int]:
        ran.append(len(items))
        await asyncio.sleep(0)
        return [item * 2 for item in items]

    tasks = await shop.submit_many(work, [(n,) for n in range(100)])
    async with shop.working(concurrency=1):
        found = [await shop.reaches(task, State.COMPLETED) for task in tasks]

    assert ran == [50, 50]
    assert [task.value for task in found] == [2 * n for n in range(100)]


@pytest.mark.parametrize("is_async", [True, False])
async def test_what_is_not_full_starts_once_its_first_member_has_waited(
    shop: Workshop, is_async: bool
) -> None:
    ran: list[list[int]] = []
    began = time.monotonic()

    if is_async:

        @shop.task(batch=Batch(max=100, within=0.5), name="work")
        async def work(items: list[int]) -> None:
            ran.append(items)
    else:

        @shop.task(batch=Batch(max=100, within=0.5), name="work")
        def work(items: list[int]) -> None:
            ran.append(items)
            assert threading.current_thread() is not threading.main_thread()

    definition = shop.registry["work"]
    async with shop.working(concurrency=2):
        first = await shop.submit(definition, 1)
        await shop.submit(definition, 2)
        await shop.reaches(first, State.COMPLETED)

    assert ran[0][0] == 1
    assert time.monotonic() - began >= 0.5


async def test_other_tasks_run_while_a_batch_fills(shop: Workshop) -> None:
    @shop.task(batch=LONG)
    async def work(items: list[int]) -> None: ...

    @shop.task()
    async def plain(n: int) -> None: ...

    members = await shop.submit_many(work, [(n,) for n in range(20)])
    others = await shop.submit_many(plain, [(n,) for n in range(20)])
    async with shop.working(concurrency=1):
        for task in others:
            await shop.reaches(task, State.COMPLETED)
        assert [(await shop.get(task)).state for task in members] == [State.RUNNING] * 20

    states = [(await shop.get(task)).state for task in members]
    assert states == [State.QUEUED] * 20, "a drain hands back what has not started"
    assert await ends_of(shop, members) == [AttemptEnd.RELEASED] * 20
    assert {(await shop.get(task)).charged for task in members} == {0}


async def test_a_burst_starts_with_what_there_is(shop: Workshop) -> None:
    ran: list[int] = []

    @shop.task(batch=LONG)
    async def work(items: list[int]) -> None:
        ran.append(len(items))

    await shop.submit_many(work, [(n,) for n in range(30)])
    await shop.drain(concurrency=2)

    assert sum(ran) == 30
    assert len(ran) <= 3


async def test_members_end_each_by_itself_and_are_retried_each_by_itself(shop: Workshop) -> None:
    ran: list[list[int]] = []

    @shop.task(batch=Batch(max=10, within=0.2), max_retries=3)
    def work(ctx: BatchContext, items: list[int]) -> list[int | Exception]:
        ran.append(items)
        return [
            ValueError(item) if item % 2 and member.attempt == 1 else item
            for item, member in zip(items, ctx.members, strict=True)
        ]

    tasks = await shop.submit_many(work, [(n,) for n in range(10)])
    async with shop.working():
        for task in tasks:
            await shop.reaches(task, State.COMPLETED)

    assert ran[0] == list(range(10))
    assert sorted(item for items in ran[1:] for item in items) == [1, 3, 5, 7, 9]
    assert [len(await shop.attempts(task)) for task in tasks] == [1, 2] * 5


async def test_a_batch_that_runs_out_of_time_fails_every_member(shop: Workshop) -> None:
    @shop.task(batch=Batch(max=3, within=0.1), timeout=0.3, max_retries=0)
    async def work(items: list[int]) -> None:
        await asyncio.sleep(3600)

    tasks = await shop.submit_many(work, [(n,) for n in range(3)])
    async with shop.working():
        found = [await shop.reaches(task, State.DEAD_LETTER) for task in tasks]

    assert [task.reason for task in found] == ["timeout"] * 3


async def test_cancelling_a_member_stops_it_before_it_starts_and_tells_it_while_it_runs(
    shop: Workshop,
) -> None:
    running = asyncio.Event()
    seen: list[bool] = []

    @shop.task(batch=Batch(max=3, within=3600))
    async def work(ctx: BatchContext, items: list[int]) -> list[int]:
        running.set()
        await ctx.members[1].stopping
        seen.extend(member.stop_requested for member in ctx.members)
        return items

    first = await shop.submit_many(work, [(0,), (1,)])
    async with shop.working():
        await shop.reaches(first[0], State.RUNNING)
        await shop.store.cancel(TaskFilter(ids=(first[0],)), limit=1)
        await shop.reaches(first[0], State.CANCELLED)
        rest = await shop.submit_many(work, [(2,), (3,)])
        await running.wait()
        await shop.store.cancel(TaskFilter(ids=(rest[0],)), limit=1)
        await shop.reaches(rest[0], State.CANCELLED)
        await shop.reaches(rest[1], State.COMPLETED)
        await shop.reaches(first[1], State.COMPLETED)

    assert seen == [False, True, False]


async def test_a_batch_whose_members_are_all_cancelled_is_stopped(shop: Workshop) -> None:
    running = asyncio.Event()

    @shop.task(batch=Batch(max=2, within=3600))
    async def work(items: list[int]) -> None:
        running.set()
        await asyncio.sleep(3600)

    tasks = await shop.submit_many(work, [(0,), (1,)])
    async with shop.working():
        await running.wait()
        await shop.store.cancel(TaskFilter(ids=tuple(tasks)), limit=2)
        for task in tasks:
            await shop.reaches(task, State.CANCELLED)


async def test_members_with_one_lock_never_share_a_batch(shop: Workshop) -> None:
    ran: list[list[int]] = []

    @shop.task(batch=Batch(max=10, within=0.2), lock="{items}")
    async def work(items: list[int]) -> None:
        ran.append(sorted(items))

    tasks = await shop.submit_many(work, [(n % 2,) for n in range(6)])
    async with shop.working():
        for task in tasks:
            await shop.reaches(task, State.COMPLETED)

    assert ran == [[0, 1]] * 3


async def test_a_running_batch_is_interrupted_by_a_drain_and_handed_back(shop: Workshop) -> None:
    running = asyncio.Event()

    @shop.task(batch=Batch(max=5, within=3600))
    async def work(items: list[int]) -> None:
        running.set()
        await asyncio.sleep(3600)

    tasks = await shop.submit_many(work, [(n,) for n in range(5)])
    async with shop.working(drain=0.1):
        await running.wait()

    assert await ends_of(shop, tasks) == [AttemptEnd.RELEASED] * 5
    assert [(await shop.get(task)).state for task in tasks] == [State.QUEUED] * 5


async def test_debounced_members_are_looked_at_before_they_run(shop: Workshop) -> None:
    from holdfast.client import Client

    ran: list[list[int]] = []

    @shop.task(batch=Batch(max=10, within=0.1), debounce=0.2)
    async def work(items: list[int]) -> None:
        ran.append(items)

    client = Client(shop.store, shop.dispatcher, shop.registry, shop.settings)
    [*_, last] = [await client.submit(work.call(n)) for n in range(3)]
    async with shop.working():
        await shop.reaches(last.task_id, State.COMPLETED)

    assert ran == [[2]]


APP = """
import os, signal
from holdfast import Batch, BatchContext, Context, Holdfast

app = Holdfast(
    url="sqlite:///{place}/tasks.db", retry_base=0.01, heartbeat=0.2, lease=5, poll=0.1
)


@app.task
def tell(n: int) -> None: ...


@app.task(executor="process", batch=Batch(max=4, within=0.3), max_retries=0)
def work(ctx: BatchContext, items: list[int]) -> list[int | Exception]:
    ctx.log("together")
    ctx.members[0].log("first")
    for member, item in zip(ctx.members, items):
        member.progress(item, 10)
        if item == 1:
            member.submit(tell, item)
    return [ValueError("bad") if item == 2 else item + os.getpid() * 0 for item in items]


@app.task(executor="process", batch=Batch(max=4, within=0.3), max_retries=0, name="dies")
def dies(items: list[int]) -> None:
    if 3 in items:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def process_app(tmp_path: Path) -> Holdfast:
    file = tmp_path / "batches.py"
    file.write_text(APP.format(place=tmp_path))
    loaded = load_app(f"{file}:app")
    assert isinstance(loaded, Holdfast)
    return loaded


async def ended(app: Holdfast, handles: list[Any]) -> list[Any]:
    async def all_ended() -> list[Any]:
        tasks = [await handle.task_async() for handle in handles]
        assert not any(task.state in (State.QUEUED, State.RUNNING) for task in tasks)
        return tasks

    return await eventually(all_ended, within=60)


async def test_a_batch_runs_in_a_process_of_its_own(process_app: Holdfast) -> None:
    async with process_app as app:
        work = app.registry["batches.work"]
        handles = await app.submit_many_async([work.call(n) for n in range(4)])
        worker = asyncio.create_task(app.run_worker())
        tasks = await ended(app, handles)
        histories = [await handle.history_async() for handle in handles]
        told = await app.count_async(name="batches.tell")
        worker.cancel()
        await asyncio.wait({worker})

    assert [task.value for task in tasks] == [0, 1, None, 3]
    assert [task.state.value for task in tasks] == [
        "completed", "completed", "dead_letter", "completed",
    ]  # fmt: skip
    lines = [[e.detail for e in history.events if e.kind == "log"] for history in histories]
    assert lines == [["together", "first"], ["together"], ["together"], ["together"]]
    assert [task.progress.done for task in tasks if task.progress is not None] == [0, 1, 2, 3]
    assert told == 1


async def test_a_poison_pill_in_a_batch_does_not_take_the_others_along(
    process_app: Holdfast,
) -> None:
    async with process_app as app:
        dies = app.registry["dies"]
        handles = await app.submit_many_async([dies.call(n) for n in range(4)])
        worker = asyncio.create_task(app.run_worker())
        tasks = await ended(app, handles)
        causes = [[a.cause for a in (await h.history_async()).attempts] for h in handles]
        worker.cancel()
        await asyncio.wait({worker})

    assert [task.state.value for task in tasks] == ["completed"] * 3 + ["dead_letter"]
    assert tasks[3].reason == "poison"
    assert causes[:3] == [[Cause.SUBMITTED, Cause.WORKER_LOST]] * 3
