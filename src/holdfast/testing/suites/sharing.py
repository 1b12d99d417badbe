"""Shares: of many who have something to do, each has a window in line."""

from __future__ import annotations

from typing import Any

from holdfast.core.gate import Gate, GateKind
from holdfast.core.task import Priority, State, TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import HEAD_STARTS, failure, new_tasks, success
from holdfast.testing.suites.base import (
    StoreSuite,
    add,
    claim,
    claim_ids,
    only,
    state,
    submit,
)


def share(key: str, window: int, priority: Priority = Priority.NORMAL) -> Gate:
    return Gate(GateKind.SHARE, key, window, head_start=HEAD_STARTS[priority])


class ShareSuite(StoreSuite):
    """Who has much to do does not keep others waiting."""

    async def test_a_share_lets_the_first_of_another_stand_right_behind_its_window(
        self, store: Store, worker: WorkerId
    ) -> None:
        big = await _ids(store, 10, gates=(share("big", 2),))
        small = await submit(store, gates=(share("small", 2),))

        assert await claim_ids(store, worker, limit=3) == [big[0], big[1], small]

    async def test_who_has_passed_a_share_stands_behind_who_came_before_that(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        big = await _ids(store, 4, gates=(share("big", 2), Gate(GateKind.RATE, "mail", 100, 60.0)))
        first = await claim(store, worker, limit=1)
        clock.advance(5)
        small = await submit(store, gates=(share("small", 2),))
        clock.advance(5)
        await store.save([success(first[0])])
        clock.advance(5)
        last = await submit(store)

        assert await claim_ids(store, worker) == [big[1], small, big[2], last]

    async def test_an_urgent_task_stays_ahead_behind_its_share(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        urgent = Priority.CRITICAL
        await submit(store, gates=(share("big", 1),))
        first = await claim(store, worker, limit=1)
        second = await submit(store, gates=(share("big", 1, urgent),), priority=urgent)
        other = await submit(store)
        clock.advance(1)
        await store.save([success(first[0])])

        assert await claim_ids(store, worker) == [second, other]

    async def test_a_task_behind_its_share_is_found_by_whoever_looks_for_it(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        tasks = await _ids(store, 4, gates=(share("big", 1), Gate(GateKind.LIMIT, "a", 9)))
        first = await claim(store, worker, limit=1)
        clock.advance(1)
        await store.save([success(first[0])])
        assert await state(store, tasks[1]) is State.QUEUED

        await store.cancel(only(tasks[1]), limit=1)
        clock.advance(1)
        (second,) = await claim(store, worker)
        await store.save([failure(second, backoff=1.0)])
        clock.advance(1)

        assert await state(store, tasks[1]) is State.CANCELLED
        assert await claim_ids(store, worker) == [tasks[3]]  # came when it left
        assert await state(store, tasks[2]) is State.BLOCKED
        assert list(await store.check()) == []


async def _ids(store: Store, number: int, **given: Any) -> list[TaskId]:
    batch = new_tasks(number, **given)
    await add(store, *batch)
    return [new.id for new in batch]
