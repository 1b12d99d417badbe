"""Order: by rank, which ages by itself. The bound on starvation is stated in `core.priority`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from holdfast.core.attempt import Claim
from holdfast.core.priority import Aging
from holdfast.core.task import NewTask, Priority, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    HEAD_STARTS,
    failure,
    loss,
    new_task,
    new_tasks,
    release,
    success,
    timeout,
)
from holdfast.testing.suites.base import (
    Settle,
    StoreSuite,
    add,
    claim,
    claim_ids,
    claim_one,
    ended,
    get,
    only,
    submit,
)

LOW_BECOMES_HIGH = (Aging().low + Aging().normal) * 1.0


class OrderSuite(StoreSuite):
    """Claims go by (rank, id); waiting makes urgent; nothing waits for ever."""

    async def test_equal_priorities_start_in_the_order_of_submission(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        tasks = []
        for _ in range(10):
            tasks.append(await submit(store))
            clock.advance(0.001)

        assert await claim_ids(store, worker) == tasks

    async def test_equal_ranks_start_in_the_order_of_their_ids(
        self, store: Store, worker: WorkerId
    ) -> None:
        batch = new_tasks(20)

        await add(store, *reversed(batch))

        assert await claim_ids(store, worker) == [t.id for t in batch]

    async def test_the_order_holds_across_claims_and_queues(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        tasks = []
        for index in range(12):
            tasks.append(await submit(store, queue=f"q{index % 3}"))
            clock.advance(1)

        got = [task for _ in range(4) for task in await claim_ids(store, worker, limit=3)]

        assert got == tasks

    async def test_priorities_start_most_urgent_first(self, store: Store, worker: WorkerId) -> None:
        by_priority = {p: await submit(store, priority=p) for p in reversed(Priority)}

        assert await claim_ids(store, worker) == [by_priority[p] for p in Priority]

    async def test_an_older_eligible_instant_goes_before_an_earlier_submit(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        now = await submit(store)
        backdated = await submit(store, run_at=clock.now - timedelta(seconds=1))

        assert await claim_ids(store, worker) == [backdated, now]

    async def test_waiting_low_work_is_as_urgent_as_normal_after_ten_minutes(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        low = await submit(store, priority=Priority.LOW)
        clock.advance(600 - 1)
        overtakes = await submit(store)
        clock.advance(2)
        waits = await submit(store)

        assert await claim_ids(store, worker) == [overtakes, low, waits]

    async def test_waiting_normal_work_is_as_urgent_as_high_after_twenty_minutes(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        normal = await submit(store)
        clock.advance(1200 - 1)
        overtakes = await submit(store, priority=Priority.HIGH)
        clock.advance(2)
        waits = await submit(store, priority=Priority.HIGH)

        assert await claim_ids(store, worker) == [overtakes, normal, waits]

    async def test_critical_is_never_reached_by_waiting(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        low, high = [await submit(store, priority=p) for p in (Priority.LOW, Priority.HIGH)]
        clock.advance(timedelta(days=365))
        critical = await submit(store, priority=Priority.CRITICAL)

        assert await claim_ids(store, worker) == [critical, high, low]

    async def test_the_rank_is_fixed_when_the_task_is_submitted(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, delay=60.0, head_start=1_000_000)
        rank = clock.now_us() + 59_000_000

        clock.advance(100)
        await claim_one(store, worker)

        assert (await get(store, task)).rank == rank

    @pytest.mark.parametrize("settle", [failure, timeout, loss, release])
    async def test_another_attempt_keeps_its_place_in_line_by_age(
        self, store: Store, clock: FakeClock, worker: WorkerId, settle: Settle
    ) -> None:
        old = await ended(store, worker, settle)
        rank = (await get(store, old)).rank
        clock.advance(20)
        young = await submit(store)

        assert await claim_ids(store, worker) == [old, young]
        assert (await get(store, old)).rank == rank

    async def test_a_requeued_task_goes_to_the_back_of_its_priority(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        old = await ended(store, worker, success)
        clock.advance(5)
        waiting = await submit(store)
        clock.advance(5)
        await store.requeue(only(old), limit=1, head_starts=HEAD_STARTS)

        assert (await get(store, old)).rank == clock.now_us() - HEAD_STARTS["normal"]
        assert await claim_ids(store, worker) == [waiting, old]

    async def test_a_task_is_passed_over_without_losing_its_place(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await submit(store, requires=frozenset({"gpu"}))
        second = await submit(store)

        assert await claim_ids(store, worker, limit=1) == [second]
        assert await claim_ids(store, worker, limit=1, capabilities={"gpu"}) == [first]

    async def test_a_deep_backlog_is_claimed_in_order(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        priorities = list(Priority)
        each = self.some(25)
        for index in range(40):
            await add(store, *(new_task(priority=priorities[(index + k) % 4]) for k in range(each)))
            clock.advance(97)

        got = [c for _ in range(10) for c in await claim(store, worker, limit=100)]

        ranks = [((await get(store, c.task_id)).rank, c.task_id) for c in got]
        assert len(ranks) == 40 * each
        assert ranks == sorted(ranks)


class StarvationSuite(StoreSuite):
    """A backlog of waiting low tasks under a load of high tasks that never ends."""

    backlog = 10_000
    slots = 250
    """Tasks started each minute while high work has the right of way."""

    async def test_every_low_task_starts_before_any_high_task_half_an_hour_younger(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        low = new_tasks(self.backlog, priority=Priority.LOW, name="low")
        for some in _slices(low, 10_000):
            await add(store, *some)
        minutes = int(LOW_BECOMES_HIGH) // 60

        to_high = 0
        for _ in range(minutes):
            await self._more_high_work(store)
            got = await claim(store, worker, limit=self.slots)
            to_high += sum(c.name == "high" for c in got)
            clock.advance(60)
        rest = await self._drain_under_load(store, worker, clock)

        assert to_high == minutes * self.slots
        assert [c.task_id for c in rest[: self.backlog]] == [t.id for t in low]
        assert all(c.name == "high" for c in rest[self.backlog :])

    async def _more_high_work(self, store: Store) -> None:
        await add(store, *new_tasks(self.slots, priority=Priority.HIGH, name="high"))

    async def _drain_under_load(
        self, store: Store, worker: WorkerId, clock: FakeClock
    ) -> list[Claim]:
        """Claim until no low task waits, while high work keeps coming before every claim."""
        got: list[Claim] = []
        while len(got) < self.backlog or got[-1].name == "low":
            await self._more_high_work(store)
            clock.advance(1)
            got += await claim(store, worker, limit=10_000)
        return got


def _slices(tasks: Sequence[NewTask], size: int) -> list[Sequence[NewTask]]:
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]
