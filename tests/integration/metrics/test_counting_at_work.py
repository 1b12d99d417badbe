"""What a real worker did is counted exactly, on every store."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from tests.integration.worker.workshop import Workshop
from tests.kit.at_work import Working

from holdfast import Holdfast
from holdfast.core import metrics
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import Priority, State
from holdfast.counting import tally_of
from holdfast.errors import StoreUnavailable
from holdfast.metrics.keeping import MinuteKeeper, fleet_counts
from holdfast.metrics.minutes import last_notes
from holdfast.ports.store import Store
from holdfast.schedules.occurrence import RunStatus
from holdfast.settings import Settings
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import new_task, worker_info
from holdfast.worker.maintenance.rescuer import Rescuer


async def test_all_that_a_worker_did_is_told(shop: Workshop) -> None:
    seen: list[int] = []

    @shop.task()
    def add(number: int) -> int:
        return number

    @shop.task(max_retries=1, priority="low")
    def flaky(number: int) -> None:
        seen.append(number)
        if seen.count(number) == 1:
            raise ValueError(number)

    @shop.task(max_retries=1)
    def broken() -> None:
        raise ValueError

    @shop.task(max_retries=3, no_retry_for=ValueError)
    def hopeless() -> None:
        raise ValueError

    @shop.task(timeout=0.05, max_retries=0, priority="high")
    async def slow() -> None:
        await asyncio.sleep(30)

    @shop.task(lock="one")
    def alone(number: int) -> None:
        return None

    await shop.submit_many(add, [(n,) for n in range(20)])
    await shop.submit_many(flaky, [(n,) for n in range(3)])
    await shop.submit_many(alone, [(n,) for n in range(4)])
    for each in (broken, hopeless, slow):
        await shop.submit(each)
    async with shop.working():
        await eventually(partial(_ended, shop.store, 30), within=30)
    counts = tally_of(shop.store).counts()

    states = {key[1]: n for key, n in counts.numbers.items() if key[0] == "task_state_total"}
    assert states == {
        "running": 34, "completed": 27, "failed": 1, "dead_letter": 2, "retrying": 4,
    }  # fmt: skip
    failed = {key[1]: n for key, n in counts.numbers.items() if key[0] == "tasks_failed_total"}
    assert failed == {"not_retriable": 1, "retries_exhausted": 1, "timeout": 1}
    assert counts.number(metrics.DEAD) == 2
    assert counts.number(metrics.RETRIES, "error", "low") == 3
    assert counts.number(metrics.RETRIES, "error", "normal") == 1
    assert counts.number(metrics.RETRIES) == 4
    assert counts.spread(metrics.DURATIONS).count == 34
    assert counts.spread(metrics.DURATIONS, "low", "error").count == 3
    assert counts.spread(metrics.DURATIONS, "high", "timeout").count == 1
    assert counts.spread(metrics.WAITS).count == 30
    assert counts.spread(metrics.LOCK_WAITS).count == 4
    assert counts.number(metrics.PROMOTED) == 0
    assert counts.spread(metrics.LATENCY, "claim").count > 0
    assert counts.spread(metrics.LATENCY, "save").count > 0


async def _ended(store: Store, number: int) -> bool:
    states = (await store.stats()).states
    return sum(states[each] for each in TERMINAL) == number


async def test_tasks_that_waited_are_promoted_at_the_claim(timed: Store, clock: FakeClock) -> None:
    shop = Workshop(timed)

    @shop.task()
    def add() -> None:
        return None

    await shop.submit(add, priority="low")
    clock.advance(1300)
    await shop.submit(add, priority="low")
    await shop.submit(add, priority="normal")
    clock.advance(601)
    await shop.submit(add, priority="low")
    await shop.drain()
    counts = tally_of(timed).counts()

    promoted = {key[1:]: n for key, n in counts.numbers.items() if key[0] == "tasks_promoted_total"}
    assert promoted == {("low", "high"): 1, ("low", "normal"): 1}
    assert counts.spread(metrics.WAITS, "low").micros // 1_000_000 == 1901 + 601
    assert counts.spread(metrics.WAITS, "normal").count == 1


async def test_the_last_words_of_a_burst_are_kept(shop: Workshop) -> None:
    @shop.task()
    def add() -> None:
        return None

    await shop.submit_many(add, [()] * 30)
    await shop.drain()

    assert (await fleet_counts(shop.store)).number(metrics.TASK_STATES, "completed") == 30


async def test_two_workers_of_one_process_are_not_counted_twice(shop: Workshop) -> None:
    @shop.task()
    def add() -> None:
        return None

    await shop.submit_many(add, [()] * 30)
    await asyncio.gather(shop.drain(), shop.drain())

    assert (await fleet_counts(shop.store)).number(metrics.TASK_STATES, "completed") == 30
    assert tally_of(shop.store).counts().number(metrics.TASK_STATES, "completed") == 30


async def test_what_a_rescuer_ends_is_counted(timed: Store, clock: FakeClock) -> None:
    shop = Workshop(timed)
    info = worker_info()
    await timed.register(info)
    await timed.add([new_task(priority=Priority.LOW)], idempotency_window=0)
    await timed.claim(info.id, queues=None, capabilities=info.capabilities, limit=1)
    await timed.bury(info.id, beats=None)

    await Rescuer(timed, shop.dispatcher, Settings()).tick()

    assert tally_of(timed).counts().number(metrics.RETRIES, "worker_lost", "low") == 1


async def test_a_note_tells_how_it_stood(timed: Store, clock: FakeClock) -> None:
    info = worker_info(capacity=8, load=3)
    await timed.register(info)
    await timed.add([new_task(queue="mail") for _ in range(3)], idempotency_window=0)
    clock.advance(20)

    await MinuteKeeper(timed).tick()

    (note,) = await last_notes(timed, 10)
    assert note.at == clock.now
    assert (note.workers, note.capacity, note.running) == (1, 8, 3)
    assert dict(note.depths) == {"mail": 3}
    assert note.oldest[Priority.NORMAL] >= 20


async def test_the_lateness_of_each_run_that_was_fired_is_told(
    app: Holdfast, working: Working
) -> None:
    @app.task(name="say")
    async def say() -> None:
        return None

    await app.schedules.create_async(say.call(), "every 1s", name="seconds")
    async with working(2):
        tally = tally_of(app.client.store)
        await eventually(lambda: tally.counts().spread(metrics.LATENESS).count >= 2, within=20)

    runs = (await app.schedules.runs_async("seconds")).runs
    fired = [one for one in runs if one.status is RunStatus.FIRED]
    assert tally.counts().spread(metrics.LATENESS).count == len(fired)


async def test_a_result_that_came_too_late_is_counted_as_that_alone(
    timed: Store, clock: FakeClock
) -> None:
    shop = Workshop(timed)
    entered, go = asyncio.Event(), asyncio.Event()

    @shop.task(max_retries=3)
    async def slow() -> None:
        entered.set()
        await go.wait()

    task = await shop.submit(slow)
    async with shop.working() as worker:
        await entered.wait()
        await timed.bury(worker.id, beats=None)
        await Rescuer(timed, shop.dispatcher, Settings()).tick()
        go.set()
        await eventually(lambda: tally_of(timed).counts().number(metrics.LEASES_LOST) == 1)
        await shop.reaches(task, State.COMPLETED)
    counts = tally_of(timed).counts()

    assert counts.number(metrics.RETRIES, "worker_lost", "normal") == 1
    assert counts.number(metrics.TASK_STATES, "completed") == 1  # of the second attempt


class Deaf(MemoryStore):
    """A store that hears no heartbeats."""

    async def beat(self, *words: Any, **more: Any) -> bool:
        raise StoreUnavailable("away")


async def test_heartbeats_that_do_not_arrive_are_counted() -> None:
    async with Deaf() as store:
        shop = Workshop(store)
        async with shop.working(heartbeat=0.05, lease=60.0):
            counted = tally_of(store)
            await eventually(lambda: counted.counts().number(metrics.BEATS_FAILED) >= 2)
