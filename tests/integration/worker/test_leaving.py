"""How a worker leaves: nothing lost, nothing charged."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests.integration.worker.faults import Spoiled
from tests.integration.worker.workshop import Workshop

from holdfast.core.fleet import WorkerStatus
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cause, State
from holdfast.testing.eventually import eventually


async def test_a_stopping_worker_lets_running_work_end(shop: Workshop) -> None:
    running = asyncio.Event()

    @shop.task()
    async def brief() -> str:
        running.set()
        await asyncio.sleep(0.2)
        return "finished"

    task = await shop.submit(brief)
    worker = shop.worker(drain=10)
    run = asyncio.create_task(worker.run())
    await running.wait()

    worker.stop()
    await asyncio.wait_for(run, 5)

    assert (await shop.get(task)).result == b'"finished"'
    [info] = await shop.store.workers()
    assert info.status is WorkerStatus.STOPPED


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_work_that_outlasts_the_drain_is_handed_back_uncharged(
    shop: Workshop, kind: str
) -> None:
    running, done = threading.Event(), threading.Event()

    @shop.task(max_retries=0)
    async def long() -> None:
        running.set()
        await asyncio.sleep(3600)

    @shop.task(max_retries=0)
    def long_in_a_thread() -> None:
        running.set()
        done.wait(30)

    task = await shop.submit(long if kind == "async" else long_in_a_thread)
    worker = shop.worker(drain=0.1)
    run = asyncio.create_task(worker.run())
    await eventually(running.is_set)

    stopped = time.monotonic()
    worker.stop()
    await asyncio.wait_for(run, 5)
    took = time.monotonic() - stopped
    done.set()

    assert took < 2
    back = await shop.get(task)
    assert (back.state, back.charged, back.crash_count) == (State.QUEUED, 0, 0)
    assert back.cause is Cause.RELEASED
    [attempt] = await shop.attempts(task)
    assert attempt.ended is AttemptEnd.RELEASED


async def test_a_second_stop_means_now(shop: Workshop) -> None:
    running = asyncio.Event()

    @shop.task()
    async def long() -> None:
        running.set()
        await asyncio.sleep(3600)

    task = await shop.submit(long)
    worker = shop.worker(drain=3600)
    run = asyncio.create_task(worker.run())
    await running.wait()

    worker.stop()
    await asyncio.sleep(0.05)
    assert not run.done()
    worker.stop()
    await asyncio.wait_for(run, 5)

    assert (await shop.get(task)).state is State.QUEUED


async def test_stop_works_from_another_thread(shop: Workshop) -> None:
    worker = shop.worker()
    run = asyncio.create_task(worker.run())
    await eventually(lambda: worker_is_there(shop))

    threading.Thread(target=worker.stop).start()

    await asyncio.wait_for(run, 5)


async def worker_is_there(shop: Workshop) -> bool:
    return bool(await shop.store.workers())


async def test_a_worker_stopped_before_it_ran_does_nothing(shop: Workshop) -> None:
    @shop.task()
    async def work() -> None: ...

    task = await shop.submit(work)
    worker = shop.worker()
    worker.stop()
    await asyncio.wait_for(worker.run(), 5)

    assert (await shop.get(task)).attempt == 0


async def test_what_was_claimed_and_not_started_goes_back_uncharged(shop: Workshop) -> None:
    go = asyncio.Event()

    @shop.task()
    async def quick() -> None: ...

    @shop.task(priority="low")
    async def hold() -> None:
        await go.wait()

    await shop.submit_many(quick, [()] * 200)
    holding = await shop.submit_many(hold, [()] * 40)
    spoiled, store = Spoiled.around(shop.store)
    worker = shop.worker(store=store, concurrency=2, drain=0.1)
    run = asyncio.create_task(worker.run())
    quick_left = TaskFilter(name="quick", states=frozenset({State.QUEUED, State.RUNNING}))
    await eventually(lambda: is_zero(shop, quick_left))

    worker.stop()
    await asyncio.wait_for(run, 5)

    assert max(spoiled.limits) > 2, "nothing was claimed ahead: the test shows nothing"
    for task in holding:
        back = await shop.get(task)
        assert (back.state, back.charged, back.crash_count) == (State.QUEUED, 0, 0)


async def is_zero(shop: Workshop, where: TaskFilter) -> bool:
    return await shop.store.count(where, limit=1000) == 0


async def test_a_cancelled_worker_still_leaves_in_order(shop: Workshop) -> None:
    running = asyncio.Event()

    @shop.task()
    async def long() -> None:
        running.set()
        await asyncio.sleep(3600)

    task = await shop.submit(long)
    run = asyncio.create_task(shop.worker().run())
    await running.wait()

    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert (await shop.get(task)).state is State.QUEUED
    [info] = await shop.store.workers()
    assert info.status is WorkerStatus.STOPPED


async def test_a_burst_ends_when_nothing_is_left(shop: Workshop) -> None:
    @shop.task()
    async def parent(n: int) -> None:
        await asyncio.sleep(0.01)
        if n:
            await shop.submit(parent, n - 1)

    first = await shop.submit(parent, 3)
    later = await shop.submit(parent, 0, delay=3600)
    started = time.monotonic()
    await shop.drain()

    assert time.monotonic() - started < 2
    assert (await shop.get(first)).state is State.COMPLETED
    assert (await shop.get(later)).state is State.QUEUED
    assert await shop.store.count(TaskFilter(states=frozenset({State.COMPLETED})), limit=9) == 4


async def test_a_worker_leaves_though_a_driver_does_not_hear_that_it_should(shop: Workshop) -> None:
    spoiled, store = Spoiled.around(shop.store)
    spoiled.deaf = {"requests"}
    worker = shop.worker(store=store)
    run = asyncio.create_task(worker.run())
    await eventually(lambda: spoiled.calls["requests"] == 1)

    worker.stop()
    await asyncio.wait_for(run, 15)

    assert spoiled.cancels == 2
    [info] = await shop.store.workers()
    assert info.status is WorkerStatus.STOPPED
