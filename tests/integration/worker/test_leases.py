"""Lost leases: what a worker that was declared dead may still do, and how it goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace

import pytest
from tests.integration.worker.faults import Spoiled
from tests.integration.worker.workshop import Workshop

from holdfast.core.fleet import WorkerStatus
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cause, Reason, State, TaskId
from holdfast.definitions.context import Context
from holdfast.ports.store import Store
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, worker_info
from holdfast.worker.maintenance.rescuer import Rescuer


async def rescue(shop: Workshop) -> None:
    await Rescuer(shop.store, shop.dispatcher, shop.settings).tick()


async def is_refused(shop: Workshop, task: TaskId) -> bool:
    history = await shop.store.history(task)
    assert history is not None
    return "late_result_refused" in [event.kind for event in history.events]


async def test_a_worker_whose_lease_was_rescued_cannot_save_its_result(shop: Workshop) -> None:
    first_runs, go = asyncio.Event(), asyncio.Event()

    @shop.task()
    async def work(ctx: Context) -> str:
        if ctx.attempt == 1:
            first_runs.set()
            await go.wait()
            return "from the zombie"
        return "from the living"

    task = await shop.submit(work)
    spoiled, paused = Spoiled.around(shop.store)
    async with shop.working(store=paused) as zombie:
        await first_runs.wait()
        for method in ("claim", "beat", "save", "report", "requests", "workers"):
            spoiled.gates[method] = asyncio.Event()
        await shop.store.bury(zombie.id, beats=None)
        await rescue(shop)
        async with shop.working():
            await shop.reaches(task, State.COMPLETED)
        go.set()
        for gate in list(spoiled.gates.values()):
            gate.set()
        spoiled.gates.clear()
        await eventually(lambda: refused(shop.store))

    done = await shop.get(task)
    assert done.result == b'"from the living"'
    attempts = await shop.attempts(task)
    assert [one.ended for one in attempts] == [AttemptEnd.WORKER_LOST, AttemptEnd.COMPLETED]
    assert attempts[1].cause is Cause.WORKER_LOST
    assert await is_refused(shop, task)


async def refused(store: Store) -> int:
    return (await store.stats()).refused


async def test_a_worker_that_was_buried_registers_anew_and_works_on(shop: Workshop) -> None:
    @shop.task()
    async def work() -> None: ...

    async with shop.working() as worker:
        before = worker.id
        await eventually(lambda: is_registered(shop.store, before))
        await shop.store.bury(before, beats=None)
        task = await shop.submit(work)
        done = await shop.reaches(task, State.COMPLETED)
        after = worker.id

    assert after != before
    assert done.attempt == 1


async def is_registered(store: Store, worker_id: str) -> bool:
    return any(worker.id == worker_id for worker in await store.workers())


async def test_bodies_of_a_lost_lease_are_stopped_and_started_again(shop: Workshop) -> None:
    starts = 0
    stopped = asyncio.Event()

    @shop.task()
    async def long(ctx: Context) -> int:
        nonlocal starts
        starts += 1
        if ctx.attempt == 1:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                stopped.set()
                raise
        return ctx.attempt

    @shop.task()
    async def other() -> None: ...

    task = await shop.submit(long)
    async with shop.working(concurrency=2) as worker:
        await eventually(lambda: starts)
        await shop.store.bury(worker.id, beats=None)
        await shop.submit(other)
        await asyncio.wait_for(stopped.wait(), 5)
        done = await shop.reaches(task, State.COMPLETED)

    # Nobody had rescued it yet, so the worker could still hand it back in good order.
    assert (done.result, done.cause, done.crash_count) == (b"2", Cause.RELEASED, 0)


async def test_a_thread_that_ends_after_its_lease_was_lost_is_refused_in_the_history(
    shop: Workshop,
) -> None:
    started, go = threading.Event(), threading.Event()

    @shop.task()
    def long(ctx: Context) -> int:
        if ctx.attempt == 1:
            started.set()
            go.wait(20)
        return ctx.attempt

    task = await shop.submit(long)
    async with shop.working(concurrency=2) as worker:
        await eventually(started.is_set)
        await shop.store.bury(worker.id, beats=None)
        await rescue(shop)
        done = await shop.reaches(task, State.COMPLETED)
        go.set()
        await eventually(lambda: is_refused(shop, task))

    assert (done.result, done.crash_count) == (b"2", 1)
    assert (await shop.get(task)).result == b"2"


async def test_two_workers_never_run_one_task_at_once(shop: Workshop) -> None:
    starts: list[str] = []

    @shop.task()
    async def once(ctx: Context) -> None:
        starts.append(ctx.id)
        await asyncio.sleep(0.001)

    tasks = await shop.submit_many(once, [()] * 300)
    async with shop.working(), shop.working():
        for task in tasks:
            await shop.reaches(task, State.COMPLETED)

    # Not by attempts: a busy worker hands back what it claimed and cannot start soon.
    assert sorted(starts) == sorted(tasks)


class HandClock:
    """Monotonic time that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def rescuer(shop: Workshop, clock: HandClock) -> Rescuer:
    settings = replace(shop.settings, lease=30.0, sweep=5.0)
    return Rescuer(shop.store, shop.dispatcher, settings, clock=clock)


async def test_a_worker_silent_for_a_lease_is_buried_and_its_tasks_go_on(
    shop: Workshop, clock: HandClock, rescuer: Rescuer
) -> None:
    @shop.task()
    async def work() -> None: ...

    task = await shop.submit(work)
    silent = worker_info()
    await shop.store.register(silent)
    await shop.store.claim(silent.id, queues=None, capabilities=frozenset(), limit=1)

    for _ in range(6):
        await rescuer.tick()
        clock.now += 5
    assert (await shop.get(task)).state is State.RUNNING
    await rescuer.tick()

    [dead] = await shop.store.workers()
    assert dead.status is WorkerStatus.DEAD
    rescued = await shop.get(task)
    assert (rescued.state, rescued.crash_count, rescued.charged) == (State.QUEUED, 1, 0)
    assert rescued.cause is Cause.WORKER_LOST


async def test_a_worker_that_beats_is_not_buried_however_long_it_works(
    shop: Workshop, clock: HandClock, rescuer: Rescuer
) -> None:
    alive = worker_info()
    await shop.store.register(alive)

    for _ in range(40):
        await rescuer.tick()
        clock.now += 10
        await shop.store.beat(alive.id)

    [worker] = await shop.store.workers()
    assert worker.status is WorkerStatus.ACTIVE


async def test_a_rescuer_that_slept_itself_does_not_bury_the_living(
    shop: Workshop, clock: HandClock, rescuer: Rescuer
) -> None:
    alive = worker_info()
    await shop.store.register(alive)

    await rescuer.tick()
    clock.now += 3600
    await rescuer.tick()

    [worker] = await shop.store.workers()
    assert worker.status is WorkerStatus.ACTIVE


async def test_a_task_that_kills_its_workers_is_dead_lettered_as_poison(shop: Workshop) -> None:
    @shop.task(max_retries=100)
    async def poison() -> None: ...

    task = await shop.submit(poison)
    for _ in range(3):
        victim = worker_info()
        await shop.store.register(victim)
        await shop.store.claim(victim.id, queues=None, capabilities=frozenset(), limit=1)
        await shop.store.bury(victim.id, beats=None)
        await rescue(shop)

    dead = await shop.get(task)
    assert (dead.state, dead.reason, dead.crash_count) == (State.DEAD_LETTER, Reason.POISON, 3)


async def test_rescuers_racing_over_the_same_orphans_record_one_death_each(shop: Workshop) -> None:
    @shop.task()
    async def work() -> None: ...

    tasks = await shop.submit_many(work, [()] * 50)
    victim = worker_info()
    await shop.store.register(victim)
    await shop.store.claim(victim.id, queues=None, capabilities=frozenset(), limit=50)
    await shop.store.bury(victim.id, beats=None)

    await asyncio.gather(*(rescue(shop) for _ in range(4)))

    for task in tasks:
        found = await shop.get(task)
        assert (found.state, found.crash_count, found.attempt) == (State.QUEUED, 1, 1)


async def test_pruning_forgets_what_is_old_enough(shop: Workshop) -> None:
    from holdfast.worker.maintenance.forgetter import Pruner

    @shop.task()
    async def work() -> None: ...

    await shop.submit_many(work, [()] * 600)
    await shop.drain()
    pruner = Pruner(shop.store, replace(shop.settings, retention=0.0))

    await asyncio.sleep(0.002)
    rests = [await pruner.tick(), await pruner.tick()]

    assert rests == [0.1, 60.0]
    assert await shop.store.count(TaskFilter(), limit=1000) == 0
    assert WINDOW > 0


async def test_a_worker_that_was_paused_does_not_start_what_it_had_claimed_before(
    shop: Workshop,
) -> None:
    starts: list[str] = []
    spoiled, store = Spoiled.around(shop.store)

    @shop.task()
    async def noop() -> None: ...

    @shop.task(priority="low")
    async def work(ctx: Context) -> None:
        starts.append(ctx._claim.worker_id)
        if len(starts) == 1:
            spoiled.gates["claim"] = asyncio.Event()
            await shop.store.bury(worker.id, beats=None)
            # Nothing of this process runs for longer than its lease.
            time.sleep(0.6)  # noqa: ASYNC251

    await shop.submit_many(noop, [()] * 300)
    tasks = await shop.submit_many(work, [()] * 50)
    async with shop.working(store=store, concurrency=1, lease=0.6, heartbeat=0.1) as worker:
        zombie = worker.id
        await eventually(lambda: worker.id != zombie)
        spoiled.gates.pop("claim").set()
        await eventually(lambda: rescued_all(shop, tasks), within=15)

    assert starts.count(zombie) == 1
    assert max(spoiled.limits) > 1, "nothing was claimed ahead: the test shows nothing"


async def rescued_all(shop: Workshop, tasks: list[TaskId]) -> bool:
    await rescue(shop)
    states = {(await shop.get(task)).state for task in tasks}
    return states == {State.COMPLETED}
