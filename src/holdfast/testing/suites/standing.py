"""Standing: the facts behind "why is it not running?", read at one instant."""

from __future__ import annotations

import pytest

from holdfast.core.fleet import WorkerStatus
from holdfast.core.stats import Standing
from holdfast.core.task import Priority, State, TaskId, WorkerId
from holdfast.core.why import explain
from holdfast.pauses import pause
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import failure, new_tasks, success, worker_info
from holdfast.testing.suites.base import (
    StoreSuite,
    add,
    claim,
    claim_one,
    ended,
    enlist,
    get,
    only,
    save,
    started,
    submit,
)


async def _standing(store: Store, task: TaskId) -> Standing:
    found = await store.standing(task)
    assert found is not None
    return found


async def _code(store: Store, task: TaskId) -> str:
    """The first reason that `why` gives."""
    return explain(await _standing(store, task)).reasons[0][0]


class StandingSuite(StoreSuite):
    """`standing` tells what `core.why` needs, and `why` then says the right thing."""

    async def test_it_tells_the_task_and_the_time(self, store: Store, clock: FakeClock) -> None:
        task = await submit(store)
        clock.advance(3)

        found = await _standing(store, task)

        assert (found.task, found.now) == (await get(store, task), clock.now)
        assert (found.queue_paused, found.gate, found.workers) == (False, None, ())

    async def test_it_tells_the_workers_newest_first_with_their_status(
        self, store: Store, clock: FakeClock
    ) -> None:
        task = await submit(store)
        dead = await enlist(store)
        clock.advance(1)
        alive = await enlist(store)
        await store.bury(dead, beats=None)

        found = await _standing(store, task)

        assert [(w.id, w.status) for w in found.workers] == [
            (alive, WorkerStatus.ACTIVE),
            (dead, WorkerStatus.DEAD),
        ]

    async def test_ahead_counts_the_ready_tasks_of_the_queue_with_a_smaller_rank(
        self, store: Store, worker: WorkerId
    ) -> None:
        await started(store, worker)
        first = await submit(store)
        await submit(store, queue="other")
        await submit(store, delay=60.0)
        await submit(store, priority=Priority.HIGH)
        second = await submit(store)

        assert (await _standing(store, first)).ahead == 1
        assert (await _standing(store, second)).ahead == 2

    async def test_ahead_counts_no_further_than_its_cap(self, store: Store) -> None:
        first = await submit(store)
        cap = (await _standing(store, first)).ahead_cap
        await add(store, *new_tasks(cap + 20))
        last = await submit(store)

        found = await _standing(store, last)

        assert found.ahead == cap
        assert explain(found).ahead_is_capped

    async def test_ready_tasks_of_a_priority_are_counted_up_to_a_rank(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await started(store, worker, priority=Priority.LOW)
        first = await submit(store, priority=Priority.LOW)
        await submit(store, priority=Priority.LOW, queue="other")
        clock.advance(1)
        second = await submit(store, priority=Priority.LOW)
        await submit(store, priority=Priority.HIGH)
        await submit(store, priority=Priority.LOW, delay=60.0)
        ranks = [(await get(store, task)).rank for task in (first, second)]

        async def counted(rank: int, queue: str | None = None, limit: int = 10) -> int:
            return await store.count_ready(
                queue=queue, priority=Priority.LOW, rank=rank, limit=limit
            )

        assert [await counted(rank) for rank in (ranks[0] - 1, ranks[0], ranks[1])] == [0, 2, 3]
        assert await counted(ranks[1], "other") == await counted(ranks[1], limit=1) == 1
        assert await counted(ranks[1], "nowhere") == 0

    async def test_only_a_ready_task_stands_in_line(self, store: Store, worker: WorkerId) -> None:
        running = await started(store, worker, lock="doc:1")
        blocked = await submit(store, lock="doc:1")
        retrying = await ended(store, worker, failure)
        completed = await ended(store, worker, success)
        waiting = await submit(store, delay=60.0)

        tasks = (running.task_id, blocked, retrying, completed, waiting)
        assert [(await _standing(store, t)).ahead for t in tasks] == [None] * 5

    async def test_a_blocked_task_names_the_holder_of_its_lock(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder = await started(store, worker, lock="doc:1")
        blocked = await submit(store, lock="doc:1")

        assert _holder(await _standing(store, blocked)) == holder.task_id
        assert (await _standing(store, holder.task_id)).gate is None
        assert await _code(store, blocked) == "locked"

    async def test_a_task_blocked_by_a_ready_one_names_it(self, store: Store) -> None:
        ready, blocked = await submit(store, lock="doc:1"), await submit(store, lock="doc:1")

        assert _holder(await _standing(store, blocked)) == ready

    async def test_it_tells_how_many_of_its_queue_were_run_to_their_end_in_the_last_minute(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, success)  # a minute ago
        clock.advance(61)
        for end in (success, success, failure):
            await ended(store, worker, end, max_retries=0)
        await ended(store, worker, lambda c: failure(c, retriable=False))
        await ended(store, worker, success, queue="mail")
        await ended(store, worker, success, requires=frozenset())
        await store.cancel(only(await submit(store)), limit=1)
        clock.advance(30)

        tasks = (
            await submit(store),
            await submit(store, queue="mail"),
            await submit(store, queue="x"),
        )

        assert [(await _standing(store, t)).ended_last_minute for t in tasks] == [5, 1, 0]

    async def test_a_busy_minute_is_told_about_right(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        here, elsewhere = self.some(300), self.some(100)
        for _ in range(4):
            await add(store, *new_tasks(here), *new_tasks(elsewhere, queue="mail"))
            await save(store, *map(success, await claim(store, worker)))
            clock.advance(2)

        found = await _standing(store, await submit(store))

        assert found.ended_last_minute == pytest.approx(4 * here, rel=1 / 6)

    async def test_the_line_is_expected_to_go_on_as_in_the_last_minute(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(30))
        await save(store, *map(success, await claim(store, worker)))
        await add(store, *new_tasks(10))

        last = await submit(store)

        assert explain(await _standing(store, last)).eta_seconds == 20.0
        clock.advance(120)
        assert explain(await _standing(store, last)).eta_seconds is None

    async def test_a_paused_queue_is_told(self, store: Store, worker: WorkerId) -> None:
        task = await submit(store, queue="mail")
        await pause(store, "mail")

        assert (await _standing(store, task)).queue_paused is True
        assert await _code(store, task) == "queue_paused"

    async def test_a_future_run_at_is_the_reason(self, store: Store, worker: WorkerId) -> None:
        assert await _code(store, await submit(store, delay=60.0)) == "future_run_at"

    async def test_a_retry_wait_is_the_reason(self, store: Store, worker: WorkerId) -> None:
        assert await _code(store, await ended(store, worker, failure)) == "retry_wait"

    async def test_no_worker_is_the_reason(self, store: Store) -> None:
        assert await _code(store, await submit(store)) == "no_worker"

    async def test_a_missing_capability_is_the_reason(self, store: Store, worker: WorkerId) -> None:
        task = await submit(store, requires=frozenset({"gpu"}))

        assert await _code(store, task) == "missing_capability"

    async def test_a_queue_nobody_serves_is_the_reason(self, store: Store) -> None:
        await store.register(worker_info(queues=("film",)))

        assert await _code(store, await submit(store, queue="mail")) == "no_worker_for_queue"

    async def test_a_running_task_says_so(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)

        assert await _code(store, found.task_id) == "running"

    async def test_used_up_attempts_are_the_reason(self, store: Store, worker: WorkerId) -> None:
        task = await ended(store, worker, failure, max_retries=0)

        assert await _code(store, task) == "attempts_used"

    async def test_an_expired_task_says_so(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, expires_in=1.0)
        clock.advance(2)
        await claim(store, worker)

        assert await _code(store, task) == "expired"

    async def test_the_next_in_line_is_about_to_start(self, store: Store, worker: WorkerId) -> None:
        first, second = await submit(store), await submit(store)

        assert await _code(store, first) == "about_to_start"
        assert await _code(store, second) == "in_line"
        await save(store, success(await claim_one(store, worker, limit=1)))
        assert (await _standing(store, second)).ahead == 0
        assert (await get(store, second)).state is State.QUEUED


def _holder(standing: Standing) -> TaskId | None:
    assert standing.gate is not None
    return standing.gate.holder
