"""Events: whoever waits for one, and whoever emits it, race; nobody waits in vain."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from holdfast.core.attempt import Claim
from holdfast.core.events import EVENT, WAITING, Came, NotYet
from holdfast.core.lifecycle import Deferred, settle
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes
from holdfast.core.task import Cause, State, TaskId, WorkerId
from holdfast.flow.events import EventKeeper, Events, look_for, wait_no_more
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.settings import Settings
from holdfast.testing.clock import FakeClock
from holdfast.testing.suites.base import StoreSuite, claim, get, submit
from holdfast.testing.suites.races import at_once

KEEP = 86_400.0
SETTINGS = Settings(retention=KEEP)
AT_ONCE = 20


def events(store: Store) -> Events:
    return Events(store, lambda _queues: None, SETTINGS)


async def defer(store: Store, one: Claim, outcome: Deferred) -> bool:
    """Hand the attempt back; whether that was taken."""
    settlement = settle(one, outcome, backoff=lambda _: 0.0, crash_limit=1)
    return not await store.save([settlement])


async def wait(store: Store, one: Claim, event: str, timeout: float | None = None) -> Any:
    """As a worker does: what the event brought, or None if the attempt gave its slot back."""
    looked = await look_for(store, one.task_id, event, timeout, keep=KEEP)
    if isinstance(looked, Came):
        await wait_no_more(store, one.task_id, event)
        return looked.payload
    if isinstance(looked, NotYet):
        also = Changes(f"wait {one.task_id} {one.attempt}", records=(looked.put,))
        if not await defer(store, one, Deferred(looked.delay, also=also)):
            assert await defer(store, one, Deferred()), "it has come: go on at once"
        return None
    return looked


class EventSuite(StoreSuite):
    """Waits, emits, and what is left of them."""

    async def test_who_waits_sleeps_until_the_event_comes(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await submit(store)
        (first,) = await claim(store, worker)

        assert await wait(store, first, "approved 1") is None
        assert await claim(store, worker) == []
        told = await events(store).emit("approved 1", {"by": "ada"})
        (again,) = await claim(store, worker)

        assert (told.first, told.woken) == (True, 1)
        assert (again.task_id, again.attempt, again.cause) == (task, 2, Cause.RESUMED)
        assert (again.charged, again.crash_count) == (0, 0)
        assert await wait(store, again, "approved 1") == {"by": "ada"}
        assert await store.records(WAITING, limit=1) == []

    async def test_the_first_of_racing_emits_counts(self, store: Store) -> None:
        said = await at_once(self.some(20), lambda n: events(store).emit("a b", n))

        (first,) = [n for n, one in enumerate(said) if one.first]
        looked = await look_for(store, TaskId("x"), "a b", None, keep=KEEP)
        assert looked == Came(first)

    async def test_an_event_is_never_missed_however_it_races_with_the_wait(
        self, store: Store, worker: WorkerId
    ) -> None:
        """1,000 of them; an emit falls before, into and after each step of the wait."""
        races, chance = self.some(1000), random.Random(7)  # noqa: S311 - no secret
        seen: dict[TaskId, int] = {}

        async def race(number: int, one: Claim) -> None:
            async def late_emit() -> None:
                for _ in range(chance.randrange(6)):
                    await asyncio.sleep(chance.choice((0, 0, 0.0005)))
                await events(store).emit(f"go {number}", number)

            answer, _ = await asyncio.gather(wait(store, one, f"go {number}"), late_emit())
            if answer is not None:
                assert answer == number
                seen[one.task_id] = number

        for start in range(0, races, AT_ONCE):
            numbers = range(start, min(races, start + AT_ONCE))
            for _ in numbers:
                await submit(store)
            claims = await claim(store, worker)
            assert len(claims) == len(numbers)
            await asyncio.gather(*map(race, numbers, claims))
            asleep = {
                one.task_id: number
                for number, one in zip(numbers, claims, strict=True)
                if one.task_id not in seen
            }
            resumed = await claim(store, worker)
            assert {one.task_id for one in resumed} == asleep.keys(), "one waits in vain"
            for one in resumed:
                assert await wait(store, one, f"go {asleep[one.task_id]}") == asleep[one.task_id]
        assert await store.records(WAITING, limit=1) == []

    async def test_many_may_wait_for_one_event(self, store: Store, worker: WorkerId) -> None:
        many = self.some(300)
        for _ in range(many):
            await submit(store)
        claims = await claim(store, worker)
        await asyncio.gather(*(wait(store, one, "all 1") for one in claims))

        told = await events(store).emit("all 1", None)

        assert told.woken == many
        assert len(await claim(store, worker)) == many

    async def test_who_sleeps_for_something_else_goes_on_sleeping(
        self, store: Store, worker: WorkerId, clock: FakeClock
    ) -> None:
        task = await submit(store)
        (one,) = await claim(store, worker)
        await wait(store, one, "a 1")
        await events(store).emit("a 2", None)

        assert await claim(store, worker) == []
        assert (await get(store, task)).state is State.QUEUED

    async def test_an_emitter_that_died_is_finished_by_others(
        self, store: Store, worker: WorkerId, clock: FakeClock
    ) -> None:
        await submit(store)
        (one,) = await claim(store, worker)
        await wait(store, one, "a 1")
        keeper = EventKeeper(store, lambda _queues: None, SETTINGS)
        with pytest.raises(ConnectionError):
            await _Dying(store, lambda _queues: None, SETTINGS).emit("a 1", 7)

        await keeper.tick()
        assert await claim(store, worker) == [], "the emitter may still be at it"
        clock.advance(31)
        await keeper.tick()
        (again,) = await claim(store, worker)

        assert await wait(store, again, "a 1") == 7

    async def test_events_and_waits_are_forgotten(
        self, store: Store, worker: WorkerId, clock: FakeClock
    ) -> None:
        task = await submit(store)
        (one,) = await claim(store, worker)
        await wait(store, one, "never 1")
        await events(store).emit("a 1", 7)
        keeper = EventKeeper(store, lambda _queues: None, SETTINGS)

        clock.advance(KEEP + 1)
        await keeper.tick()
        assert await one_record(store, EVENT, "a 1") is None
        assert await store.records(WAITING, limit=9), "it still waits"
        await store.cancel(TaskFilter(ids=(task,)), limit=1)
        clock.advance(KEEP + 1)
        await keeper.tick()

        assert await store.records(WAITING, limit=9) == []


class _Dying(Events):
    """Killed when it has written the event."""

    async def tell(self, event: str) -> int:
        raise ConnectionError(event)
