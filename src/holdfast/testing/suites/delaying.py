"""Delay: a task starts when it is due, not before, and a sleeping worker knows when to look."""

from __future__ import annotations

from datetime import timedelta

from holdfast.core.task import State, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import failure, new_tasks
from holdfast.testing.suites.base import (
    StoreSuite,
    add,
    claim,
    claim_ids,
    ended,
    get,
    state,
    submit,
)


async def _next_due(
    store: Store, worker: WorkerId, *queues: str, capabilities: frozenset[str] = frozenset()
) -> float | None:
    claimed = await store.claim(worker, queues=queues or None, capabilities=capabilities, limit=10)
    return claimed.next_due


class DelaySuite(StoreSuite):
    """`delay`, `run_at`, `next_due`."""

    async def test_a_delayed_task_waits_as_queued(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, delay=5.0)

        assert await claim(store, worker) == []

        found = await get(store, task)
        assert (found.state, found.run_at) == (State.QUEUED, clock.now + timedelta(seconds=5))

    async def test_a_task_does_not_start_a_microsecond_early(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, delay=5.0)
        clock.advance(4.999_999)
        assert await claim(store, worker) == []

        clock.advance(0.000_001)

        assert await claim_ids(store, worker) == [task]

    async def test_a_task_for_an_instant_starts_then(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, run_at=clock.now + timedelta(days=3))
        clock.advance(timedelta(days=3))

        assert await claim_ids(store, worker) == [task]

    async def test_due_tasks_line_up_by_rank_with_those_that_never_waited(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        late = await submit(store, delay=9.0)
        early = await submit(store, delay=3.0)
        clock.advance(6)
        now = await submit(store)
        clock.advance(4)

        assert await claim_ids(store, worker) == [early, now, late]

    async def test_many_tasks_due_at_once_all_become_ready(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        batch = new_tasks(self.some(700), delay=5.0)
        await add(store, *batch)
        clock.advance(5)

        assert await claim_ids(store, worker) == [t.id for t in batch]

    async def test_a_retry_does_not_start_before_its_time(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, failure)
        clock.advance(9.999_999)
        assert await claim(store, worker) == []

        clock.advance(0.000_001)

        assert await claim_ids(store, worker) == [task]

    async def test_a_due_retry_shows_as_queued_after_the_next_claim_whoever_claims(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, failure)
        clock.advance(10)
        assert await state(store, task) is State.RETRYING

        await claim(store, worker, queues=["another"])

        assert await state(store, task) is State.QUEUED

    async def test_next_due_is_the_time_until_the_earliest_waiting_task(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await submit(store, delay=60.0)
        await submit(store, delay=20.0)
        clock.advance(5)

        due = await _next_due(store, worker)

        assert due is not None
        assert 0 <= due <= 15

    async def test_next_due_knows_of_retries(self, store: Store, worker: WorkerId) -> None:
        await ended(store, worker, failure)

        due = await _next_due(store, worker)

        assert due is not None
        assert 0 <= due <= 10

    async def test_next_due_is_not_later_than_a_task_of_the_workers_own_queue(
        self, store: Store, worker: WorkerId
    ) -> None:
        await submit(store, queue="mail", delay=30.0)
        await submit(store, queue="film", delay=10.0)

        for queues, latest in (("mail",), 30), (("film",), 10), (("mail", "film"), 10):
            due = await _next_due(store, worker, *queues)
            assert due is not None
            assert 0 <= due <= latest

    async def test_next_due_sees_tasks_whose_requirements_the_worker_meets(
        self, store: Store, worker: WorkerId
    ) -> None:
        await submit(store, delay=10.0, requires=frozenset({"gpu"}))

        due = await _next_due(store, worker, capabilities=frozenset({"gpu", "fast"}))

        assert due is not None
        assert 0 <= due <= 10

    async def test_nothing_waits_means_nothing_is_due(self, store: Store, worker: WorkerId) -> None:
        await submit(store)

        assert await _next_due(store, worker) is None
