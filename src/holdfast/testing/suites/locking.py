"""Locks: of all tasks with one key one at a time, in the order of rank, and others flow past."""

from __future__ import annotations

import asyncio
import time

from holdfast.core.lifecycle import UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.task import Added, Priority, State, SubmitOutcome, TaskId, WorkerId
from holdfast.pauses import pause
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    HEAD_STARTS,
    failure,
    new_task,
    success,
)
from holdfast.testing.suites.base import (
    StoreSuite,
    add,
    claim,
    claim_ids,
    claim_one,
    ended,
    enlist,
    only,
    save,
    started,
    state,
    submit,
)
from holdfast.testing.suites.races import Hold, at_once, in_threads, overlaps

KEY = "doc:1"


class LockSuite(StoreSuite):
    """At most one task of a key is ready or running; the rest are blocked."""

    async def test_the_first_task_of_a_key_is_ready_and_the_next_is_blocked(
        self, store: Store
    ) -> None:
        answers = await add(store, new_task(lock=KEY), new_task(lock=KEY))

        assert [answer.state for answer in answers] == [State.QUEUED, State.BLOCKED]

    async def test_one_claim_takes_one_task_of_a_key(self, store: Store, worker: WorkerId) -> None:
        first = await submit(store, lock=KEY)
        await submit(store, lock=KEY)

        assert await claim_ids(store, worker) == [first]
        assert await claim(store, worker) == []

    async def test_tasks_of_other_keys_and_of_none_flow_past(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await submit(store, lock=KEY)
        await submit(store, lock=KEY)
        other, none = await submit(store, lock="doc:2"), await submit(store)

        assert await claim_ids(store, worker) == [first, other, none]

    async def test_a_key_holds_across_names_and_queues(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await submit(store, lock=KEY, queue="a", name="one")
        await submit(store, lock=KEY, queue="b", name="two")

        assert await claim_ids(store, worker) == [first]
        assert await claim(store, worker, queues=["b"]) == []

    async def test_keys_are_compared_exactly(self, store: Store, worker: WorkerId) -> None:
        keys = ("doc", "Doc", "doc ", "doc%", "döc", "")
        tasks = [await submit(store, lock=key) for key in keys]

        assert await claim_ids(store, worker) == tasks

    async def test_tasks_of_a_key_run_in_the_order_of_submission(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        tasks = []
        for _ in range(6):
            tasks.append(await submit(store, lock=KEY))
            clock.advance(1)
        got = []

        for _ in tasks:
            found = await claim_one(store, worker)
            got.append(found.task_id)
            await save(store, success(found))

        assert got == tasks

    async def test_a_more_urgent_task_changes_places_with_a_ready_holder(
        self, store: Store, worker: WorkerId
    ) -> None:
        normal = await submit(store, lock=KEY)
        (answer,) = await add(store, new_task(lock=KEY, priority=Priority.HIGH))

        assert answer.state is State.QUEUED
        assert await state(store, normal) is State.BLOCKED
        assert await claim_ids(store, worker) == [answer.task_id]

    async def test_a_more_urgent_task_waits_for_a_running_holder(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder = await started(store, worker, lock=KEY)
        urgent = await submit(store, lock=KEY, priority=Priority.CRITICAL)

        assert await state(store, urgent) is State.BLOCKED
        assert await state(store, holder.task_id) is State.RUNNING

    async def test_equal_ranks_of_a_key_go_by_id(self, store: Store, worker: WorkerId) -> None:
        early, late = new_task(lock=KEY), new_task(lock=KEY)
        await add(store, late)
        await add(store, early)

        assert await state(store, late.id) is State.BLOCKED
        assert await claim_ids(store, worker) == [early.id]

    async def test_the_answers_to_a_batch_tell_who_holds_the_key_after_it(
        self, store: Store
    ) -> None:
        normal, high = new_task(lock=KEY), new_task(lock=KEY, priority=Priority.HIGH)

        answers = await add(store, normal, high)

        assert answers == [
            Added(normal.id, SubmitOutcome.CREATED, State.BLOCKED),
            Added(high.id, SubmitOutcome.CREATED, State.QUEUED),
        ]

    async def test_the_blocked_task_with_the_smallest_rank_is_next(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder = await started(store, worker, lock=KEY)
        low, normal, high = [
            await submit(store, lock=KEY, priority=p)
            for p in (Priority.LOW, Priority.NORMAL, Priority.HIGH)
        ]

        await save(store, success(holder))

        assert await claim_ids(store, worker) == [high]
        assert [await state(store, t) for t in (low, normal)] == [State.BLOCKED] * 2

    async def test_a_waiting_task_holds_no_key(self, store: Store, worker: WorkerId) -> None:
        await submit(store, lock=KEY, delay=60.0)
        ready = await submit(store, lock=KEY)

        assert await claim_ids(store, worker) == [ready]

    async def test_a_due_task_is_blocked_by_a_running_holder(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        later = await submit(store, lock=KEY, delay=5.0)
        holder = await started(store, worker, lock=KEY)
        clock.advance(5)

        assert await claim(store, worker) == []
        assert await state(store, later) is State.BLOCKED
        await save(store, success(holder))
        assert await claim_ids(store, worker) == [later]

    async def test_a_due_task_with_a_smaller_rank_changes_places_with_a_ready_holder(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        due = await submit(store, lock=KEY, delay=5.0, priority=Priority.HIGH)
        holder = await submit(store, lock=KEY)
        clock.advance(5)

        assert await claim_ids(store, worker) == [due]
        assert await state(store, holder) is State.BLOCKED

    async def test_several_due_tasks_of_a_free_key_give_one_ready_by_rank(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        low = await submit(store, lock=KEY, delay=1.0, priority=Priority.LOW)
        high = await submit(store, lock=KEY, delay=2.0, priority=Priority.HIGH)
        normal = await submit(store, lock=KEY, delay=3.0)
        clock.advance(3)

        assert await claim_ids(store, worker) == [high]
        assert [await state(store, t) for t in (low, normal)] == [State.BLOCKED] * 2

    async def test_a_retry_comes_back_to_a_taken_key_as_blocked(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        first = await ended(store, worker, failure, lock=KEY)
        second = await started(store, worker, lock=KEY)
        clock.advance(10)

        assert await claim(store, worker) == []
        assert await state(store, first) is State.BLOCKED
        await save(store, success(second))
        assert await claim_ids(store, worker) == [first]

    async def test_a_requeued_task_is_blocked_if_its_key_is_taken(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await ended(store, worker, success, lock=KEY)
        await started(store, worker, lock=KEY)

        (again,) = await store.requeue(only(first), limit=1, head_starts=HEAD_STARTS)

        assert again.state is State.BLOCKED

    async def test_a_holder_holds_though_its_queue_is_paused(
        self, store: Store, worker: WorkerId
    ) -> None:
        await submit(store, lock=KEY, queue="paused")
        await pause(store, "paused")
        second = await submit(store, lock=KEY)

        assert await claim(store, worker) == []
        assert await state(store, second) is State.BLOCKED

    async def test_a_holder_holds_though_nobody_has_its_capabilities(
        self, store: Store, worker: WorkerId
    ) -> None:
        await submit(store, lock=KEY, requires=frozenset({"gpu"}))
        second = await submit(store, lock=KEY)

        assert await claim(store, worker) == []
        assert await state(store, second) is State.BLOCKED

    async def test_rivals_submitted_while_holders_settle_run_once_and_one_at_a_time(
        self, store: Store
    ) -> None:
        batch = [new_task(lock=f"doc:{n % 5}") for n in range(self.some(100))]
        workers = [await enlist(store) for _ in range(4)]
        done: list[TaskId] = []
        holds: list[Hold] = []

        async def act(index: int) -> None:
            if index >= 4:
                for new in batch[index - 4 :: 2]:
                    await add(store, new)
                    await asyncio.sleep(0)
                return
            while len(done) < len(batch):
                done.extend(await _run_some(store, workers[index], holds))

        await at_once(6, act)

        assert overlaps(holds) == []
        assert sorted(done) == [t.id for t in batch]

    async def test_threads_never_hold_one_key_together(self, store: Store) -> None:
        batch = [new_task(lock=f"doc:{n % 3}") for n in range(self.some(90))]
        await add(store, *batch)
        holds: list[Hold] = []

        async def drain(_: int) -> list[TaskId]:
            worker, done = await enlist(store), list[TaskId]()
            while await store.count(TaskFilter(states=UNFINISHED), limit=1):
                done += await _run_some(store, worker, holds)
            return done

        shares = await in_threads(4, drain)

        assert overlaps(holds) == []
        assert sorted(task for share in shares for task in share) == [t.id for t in batch]


async def _run_some(store: Store, worker: WorkerId, holds: list[Hold]) -> list[TaskId]:
    """Claim up to three locked tasks, hold each for a moment, and settle them."""
    await asyncio.sleep(0)  # a store in memory never suspends by itself
    claims = await claim(store, worker, limit=3)
    since = time.monotonic()
    for found in claims:
        await asyncio.sleep(0)
        holds.append((str(found.lock), since, time.monotonic()))
        await save(store, success(found))
    return [found.task_id for found in claims]
