"""Expiry: a task that did not start in time is cancelled, and never started."""

from __future__ import annotations

from datetime import timedelta

from holdfast.core.task import Reason, State, WorkerId
from holdfast.pauses import pause
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import failure, release, success
from holdfast.testing.suites.base import (
    StoreSuite,
    claim,
    claim_ids,
    claim_one,
    ended,
    events,
    get,
    save,
    started,
    state,
    submit,
)


class ExpirySuite(StoreSuite):
    """`expires_at` and `expires_in`."""

    async def test_an_expired_task_is_cancelled_instead_of_started(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, expires_in=10.0)
        clock.advance(10)

        assert await claim(store, worker) == []

        found = await get(store, task)
        assert (found.state, found.reason) == (State.CANCELLED, Reason.EXPIRED)
        assert (found.finished_at, found.attempt) == (clock.now, 0)

    async def test_an_expiry_leaves_an_event(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, expires_in=10.0)
        clock.advance(11)
        await claim(store, worker)

        event = (await events(store, task))[-1]
        assert (event.kind, event.at) == ("expired", clock.now)

    async def test_a_task_starts_until_its_last_microsecond(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, expires_in=10.0)
        clock.advance(9.999_999)

        assert await claim_ids(store, worker) == [task]

    async def test_an_instant_in_the_past_expires_at_the_first_claim(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, expires_at=clock.now - timedelta(days=1))

        assert await claim(store, worker) == []
        assert await state(store, task) is State.CANCELLED

    async def test_a_started_task_does_not_expire(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker, expires_in=10.0)
        clock.advance(60)
        await claim(store, worker)

        await save(store, success(found))

        assert await state(store, found.task_id) is State.COMPLETED

    async def test_a_waiting_task_can_expire_before_it_is_due(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, delay=60.0, expires_in=10.0)
        clock.advance(10)
        await claim(store, worker)

        assert await state(store, task) is State.CANCELLED

    async def test_a_task_due_and_expired_at_once_is_not_started(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await submit(store, delay=10.0, expires_in=10.0)
        clock.advance(10)

        assert await claim(store, worker) == []

    async def test_a_retry_past_the_expiry_is_not_started(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, failure, expires_in=5.0)
        clock.advance(10)

        assert await claim(store, worker) == []

        found = await get(store, task)
        assert (found.state, found.reason, found.attempt) == (State.CANCELLED, Reason.EXPIRED, 1)

    async def test_a_task_handed_back_after_its_expiry_is_not_started_again(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker, expires_in=5.0)
        clock.advance(10)
        await save(store, release(found))

        assert await claim(store, worker) == []
        assert await state(store, found.task_id) is State.CANCELLED

    async def test_tasks_expire_whatever_queue_the_claim_is_for(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, queue="mail", expires_in=10.0)
        await pause(store, "mail")
        clock.advance(10)

        await claim(store, worker, queues=["other"])

        assert await state(store, task) is State.CANCELLED

    async def test_time_alone_expires_nothing_before_the_next_claim(
        self, store: Store, clock: FakeClock
    ) -> None:
        task = await submit(store, expires_in=10.0)
        clock.advance(10)

        assert await state(store, task) is State.QUEUED

    async def test_tasks_that_have_not_expired_start_beside_those_that_have(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        tasks = [await submit(store, expires_in=float(n)) for n in range(1, 11)]
        clock.advance(5)

        assert await claim_ids(store, worker) == tasks[5:]

    async def test_a_claim_of_one_takes_a_fresh_task_behind_many_expired(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        for _ in range(30):
            await submit(store, expires_in=1.0)
        fresh = await submit(store)
        clock.advance(1)

        assert (await claim_one(store, worker, limit=1)).task_id == fresh
