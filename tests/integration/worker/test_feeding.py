"""What a worker takes, when, and how much of it ahead."""

from __future__ import annotations

import asyncio
import time

from tests.integration.worker.faults import Spoiled
from tests.integration.worker.workshop import Workshop

from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, State
from holdfast.testing.eventually import eventually


async def running(shop: Workshop) -> int:
    return await shop.store.count(TaskFilter(states=frozenset({State.RUNNING})), limit=10_000)


async def test_long_tasks_are_never_hoarded(shop: Workshop) -> None:
    go = asyncio.Event()
    started = 0

    @shop.task()
    async def long() -> None:
        nonlocal started
        started += 1
        await go.wait()

    await shop.submit_many(long, [()] * 100)
    async with shop.working(concurrency=4):
        await eventually(lambda: started == 4)
        await asyncio.sleep(0.3)

        assert await running(shop) == 4
        go.set()


async def test_no_ops_are_claimed_far_ahead(shop: Workshop) -> None:
    @shop.task()
    async def noop() -> None: ...

    await shop.submit_many(noop, [()] * 5000)
    spoiled, store = Spoiled.around(shop.store)
    await shop.drain(store=store, concurrency=4)

    assert max(spoiled.limits) >= 500
    assert spoiled.calls["claim"] < 40
    assert spoiled.calls["save"] < 400


async def test_tasks_that_turn_out_long_are_given_back_within_a_second(shop: Workshop) -> None:
    go = asyncio.Event()

    @shop.task()
    async def noop() -> None: ...

    @shop.task(priority="low")
    async def long() -> None:
        await go.wait()

    await shop.submit_many(noop, [()] * 3000)
    tasks = await shop.submit_many(long, [()] * 500)
    spoiled, store = Spoiled.around(shop.store)
    async with shop.working(store=store, concurrency=4):
        await eventually(lambda: max(spoiled.limits, default=0) > 100)
        await eventually(lambda: is_done(shop, "noop"))

        async def only_the_started() -> bool:
            return await running(shop) <= 8

        await eventually(only_the_started, within=2)
        go.set()

    ends = [one.ended for task in tasks for one in await shop.attempts(task)]
    assert set(ends) <= {AttemptEnd.RELEASED, AttemptEnd.COMPLETED, None}
    assert AttemptEnd.RELEASED in ends, "nothing was claimed ahead: the test shows nothing"


async def is_done(shop: Workshop, name: str) -> bool:
    left = frozenset({State.QUEUED, State.RUNNING})
    return await shop.store.count(TaskFilter(name=name, states=left), limit=1) == 0


async def test_one_long_task_does_not_slow_the_short_ones(shop: Workshop) -> None:
    go = asyncio.Event()

    @shop.task(priority="high")
    async def long() -> None:
        await go.wait()

    @shop.task()
    async def noop() -> None: ...

    await shop.submit(long)
    spoiled, store = Spoiled.around(shop.store)
    async with shop.working(store=store, concurrency=2):
        await eventually(lambda: running(shop))
        await asyncio.sleep(0.3)
        before = spoiled.calls["claim"]
        await shop.submit_many(noop, [()] * 3000)
        await eventually(lambda: is_done(shop, "noop"))

        assert spoiled.calls["claim"] - before < 40
        go.set()


async def test_computing_bodies_count_against_the_loop_not_the_slots(shop: Workshop) -> None:
    @shop.task()
    async def compute() -> None:
        until = time.perf_counter() + 0.005
        while time.perf_counter() < until:
            pass

    await shop.submit_many(compute, [()] * 150)
    spoiled, store = Spoiled.around(shop.store)
    await shop.drain(store=store, concurrency=50)

    # 20 start within 100 ms, whatever the number of slots; the first claim fills the slots.
    assert max(spoiled.limits[1:]) <= 50


async def test_a_submit_wakes_a_sleeping_worker_at_once(shop: Workshop) -> None:
    @shop.task()
    async def noop() -> None: ...

    async with shop.working(poll=30.0) as worker:
        await eventually(lambda: worker.id)
        await asyncio.sleep(0.1)
        task = await shop.submit(noop)
        asked = time.monotonic()
        await shop.reaches(task, State.COMPLETED, within=5)

    assert time.monotonic() - asked < 1


async def test_a_worker_that_missed_the_wake_up_polls(shop: Workshop) -> None:
    @shop.task()
    async def noop() -> None: ...

    async with shop.working(poll=0.1):
        await asyncio.sleep(0.05)
        wake, shop.dispatcher.wake = shop.dispatcher.wake, lambda queues: None  # type: ignore[method-assign]
        task = await shop.submit(noop)
        await shop.reaches(task, State.COMPLETED, within=3)
        shop.dispatcher.wake = wake  # type: ignore[method-assign]


async def test_a_delayed_task_starts_when_due_not_at_the_next_poll(shop: Workshop) -> None:
    @shop.task()
    async def noop() -> None: ...

    async with shop.working(poll=30.0):
        task = await shop.submit(noop, delay=0.2)
        done = await shop.reaches(task, State.COMPLETED, within=3)

    assert done.started_at is not None
    assert 0 <= (done.started_at - done.run_at).total_seconds() < 1


async def test_locked_tasks_follow_each_other_without_polling(shop: Workshop) -> None:
    inside = 0
    most = 0

    @shop.task(lock="one")
    async def locked() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.001)
        inside -= 1

    async with shop.working(poll=30.0):
        tasks = await shop.submit_many(locked, [()] * 20)
        for task in tasks:
            await shop.reaches(task, State.COMPLETED, within=5)

    assert most == 1


async def test_only_the_queues_and_capabilities_it_has_are_taken(shop: Workshop) -> None:
    @shop.task()
    async def noop() -> None: ...

    mail = await shop.submit(noop, queue="mail")
    other = await shop.submit(noop, queue="other")
    gpu = await shop.submit(noop, queue="mail", requires={"gpu"})
    await shop.drain(queues=("mail",))

    states = [(await shop.get(task)).state for task in (mail, other, gpu)]
    assert states == [State.COMPLETED, State.QUEUED, State.QUEUED]
    await shop.drain(queues=("*",), capabilities=frozenset({"gpu"}))
    assert (await shop.get(other)).state is State.COMPLETED
    assert (await shop.get(gpu)).state is State.COMPLETED
