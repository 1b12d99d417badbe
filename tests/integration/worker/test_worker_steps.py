"""Durable steps in a worker: on its loop, in threads and processes, and what they cost."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.app import Holdfast
from holdfast.core.attempt import Claimed, Refusal, Report
from holdfast.core.lifecycle import WorkerLost, settle
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cause, State, TaskError, TaskId
from holdfast.definitions.context import Context
from holdfast.flow.events import Events
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing.eventually import eventually
from holdfast.worker.loading import load_app


class Counting(SQLiteStore):
    """Counts what it is asked."""

    reports = claims = journals = 0

    async def report(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        self.reports += 1
        return await super().report(reports)

    async def claim(self, *args: Any, **kwargs: Any) -> Claimed:
        self.claims += 1
        return await super().claim(*args, **kwargs)

    async def journal(self, task_id: TaskId) -> Mapping[str, bytes]:
        self.journals += 1
        return await super().journal(task_id)


@pytest.fixture
async def counting(tmp_path: Path) -> AsyncIterator[Counting]:
    async with Counting(tmp_path / "counted.db") as opened:
        yield opened


def events(shop: Workshop) -> Events:
    return Events(shop.store, shop.dispatcher.wake, shop.settings)


@pytest.mark.parametrize("is_async", [True, False])
async def test_steps_sleeps_and_waits_on_the_loop_and_in_threads(
    shop: Workshop, is_async: bool
) -> None:
    calls: list[str] = []

    def charge() -> int:
        calls.append("charge")
        return 17

    async def order_async(ctx: Context) -> list[Any]:
        first = await ctx.step("charge", charge)
        await ctx.sleep(0.05)
        answer = await ctx.wait_for("approved", key=ctx.id)
        if await ctx.step("which", lambda: ctx.attempt) == ctx.attempt:
            raise ValueError
        return [first, answer, await ctx.map(abs, [-1, -2])]

    def order_sync(ctx: Context) -> list[Any]:
        first = ctx.step_sync("charge", charge)
        ctx.sleep_sync(0.05)
        answer = ctx.wait_for_sync("approved", key=ctx.id)
        if ctx.step_sync("which", lambda: ctx.attempt) == ctx.attempt:
            raise ValueError
        return [first, answer, ctx.map_sync(abs, [-1, -2])]

    order = shop.task(name="order")(order_async if is_async else order_sync)
    task = await shop.submit(order)
    async with shop.working(concurrency=2):

        async def waits() -> bool:
            found = await shop.get(task)
            return (found.state, found.attempt) == (State.QUEUED, 2)

        await eventually(waits)
        await events(shop).emit(f"approved {task}", {"by": "ada"})
        done = await shop.reaches(task, State.COMPLETED)

    assert done.value == [17, {"by": "ada"}, [1, 2]]
    assert calls == ["charge"]
    assert not await shop.store.records("wait", limit=1)
    causes = [attempt.cause for attempt in await shop.attempts(task)]
    assert causes == [Cause.SUBMITTED, Cause.RESUMED, Cause.RESUMED, Cause.RETRY]


async def test_a_step_is_on_disk_when_it_returns(shop: Workshop) -> None:
    @shop.task()
    async def order(ctx: Context) -> list[str]:
        await ctx.step("charge", str, 17)
        return list(await shop.store.journal(TaskId(ctx.id)))

    task = await shop.submit(order)
    await shop.drain()

    assert (await shop.get(task)).value == ["charge"]


async def test_steps_of_many_tasks_share_their_commits(counting: Counting) -> None:
    shop = Workshop(counting)

    @shop.task()
    async def order(ctx: Context) -> None:
        for n in range(10):
            await ctx.step(f"step-{n}", str, n)

    await shop.submit_many(order, [()] * 200)
    await shop.drain(concurrency=200)

    assert counting.reports < 200, "2,000 steps"
    assert counting.journals == 0, "a first attempt has nothing to read"


async def test_a_plain_task_asks_for_no_journal(counting: Counting) -> None:
    shop = Workshop(counting)

    @shop.task(max_retries=3)
    def plain(ctx: Context) -> None:
        if ctx.attempt < 3:
            raise ValueError

    await shop.submit(plain)
    await shop.drain()

    assert (counting.journals, counting.reports) == (0, 0)


async def test_sleepers_cost_an_idle_worker_nothing(counting: Counting) -> None:
    shop = Workshop(counting)

    @shop.task()
    async def order(ctx: Context, n: int) -> None:
        if n % 2:
            await ctx.sleep("3d")
        else:
            await ctx.wait_for("approved", key=n)

    many = 1000  # each of them costs a wait record; what an idle worker does is counted below
    await shop.submit_many(order, [(n,) for n in range(many)])
    async with shop.working(concurrency=100, poll=30.0):

        async def all_sleep() -> bool:
            stats = await counting.stats()
            return stats.queues[0].waiting == many

        await eventually(all_sleep, within=60)
        await asyncio.sleep(0.5)
        before = counting.claims, counting.reports, counting.journals
        await asyncio.sleep(2)

        assert (counting.claims, counting.reports, counting.journals) == before


async def test_a_cancelled_sleeper_does_not_wake_for_its_event(shop: Workshop) -> None:
    @shop.task()
    async def order(ctx: Context) -> None:
        await ctx.wait_for("approved", key=1)

    task = await shop.submit(order)
    await shop.drain()
    await shop.store.cancel(TaskFilter(ids=(task,)), limit=1)
    told = await events(shop).emit("approved 1", None)
    await shop.drain()

    assert told.woken == 0
    assert (await shop.get(task)).state is State.CANCELLED
    assert not await shop.store.records("wait", limit=1)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # struck as a source was opened
async def test_who_lost_the_lease_records_nothing(shop: Workshop) -> None:
    stolen, seen = threading.Event(), list[str]()

    @shop.task()
    def order(ctx: Context) -> None:
        def charge() -> None:
            stolen.wait(10)

        try:
            ctx.step_sync("charge", charge)
        except BaseException as error:  # the worker may have noticed first, and interrupts it
            seen.append(type(error).__name__)
            raise

    task = await shop.submit(order)
    async with shop.working() as worker:
        await shop.reaches(task, State.RUNNING)
        await shop.store.bury(worker.id, beats=None)
        claim = (await shop.store.orphans(limit=1))[0]
        lost = WorkerLost(TaskError(type="WorkerLost", message=""))
        await shop.store.save([settle(claim, lost, backoff=lambda _: 60.0, crash_limit=1)])
        stolen.set()
        await eventually(lambda: bool(seen))

    assert seen in (["LeaseLost"], ["CancelledError"])
    assert not await shop.store.journal(task)


async def test_a_deploy_in_the_middle_of_a_step_charges_nothing(shop: Workshop) -> None:
    calls: list[int] = []

    @shop.task(max_retries=0)
    async def order(ctx: Context) -> None:
        await ctx.step("charge", calls.append, 1)
        if ctx.attempt == 1:
            await ctx.step("hold", asyncio.sleep, 60)

    task = await shop.submit(order)
    async with shop.working(drain=0.1):
        await eventually(lambda: bool(calls))
    await shop.drain()

    assert (await shop.get(task)).state is State.COMPLETED
    assert calls == [1]
    assert [a.ended for a in await shop.attempts(task)] == [
        AttemptEnd.RELEASED,
        AttemptEnd.COMPLETED,
    ]


APP = """
import asyncio, os
from holdfast import Context, Holdfast

app = Holdfast(url="sqlite:///{place}/tasks.db", retry_base=0.01)


def note(what):
    with open("{place}/calls", "a") as file:
        print(what, file=file)
    return [what, os.getpid() != {pid}]


@app.task(executor="process")
def plain(ctx: Context) -> object:
    first = ctx.step_sync("charge", note, "charge")
    ctx.sleep_sync(0.05)
    answer = ctx.wait_for_sync("approved", key=1)
    if ctx.step_sync("which", lambda: ctx.attempt) == ctx.attempt:
        raise ValueError
    return [first, answer, ctx.map_sync(abs, [-1, -2])]


@app.task(executor="process")
async def coroutine(ctx: Context) -> object:
    first = await ctx.step("charge", note, "charge")
    await ctx.sleep(0.05)
    answer = await ctx.wait_for("approved", key=1)
    if await ctx.step("which", lambda: ctx.attempt) == ctx.attempt:
        raise ValueError
    return [first, answer, await ctx.map(abs, [-1, -2])]

"""


@pytest.mark.parametrize("name", ["plain", "coroutine"])
async def test_in_a_process_of_its_own(tmp_path: Path, name: str) -> None:
    file = tmp_path / "shop.py"
    file.write_text(APP.format(place=tmp_path, pid=os.getpid()))
    app = load_app(f"{file}:app")
    assert isinstance(app, Holdfast)
    async with app:
        handle = await app.registry[f"shop.{name}"].submit_async()
        worker = app.worker(app_spec=f"{file}:app", concurrency=1)
        running = asyncio.create_task(worker.run())
        try:

            async def waits() -> bool:
                why = await app.why_async(handle.id)
                return why.reasons[0][0] == "waiting_for_event"

            await eventually(waits, within=30)
            assert (await app.emit_async("approved", 1, "yes")).woken == 1
            result = await handle.result_async(30)
        finally:
            worker.stop()
            await asyncio.wait_for(running, 20)

    assert result == [["charge", True], "yes", [1, 2]]
    assert (tmp_path / "calls").read_text() == "charge\n"
