"""Succeeding: whom a gate let pass the store tells of, by queue, as soon as that is on disk."""

from __future__ import annotations

import pytest

from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Put
from holdfast.core.task import Priority, State, WorkerId
from holdfast.ports.dispatcher import EVERYBODY
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import new_task, release, success
from holdfast.testing.suites.base import (
    EVERYTHING,
    MANY,
    StoreSuite,
    add,
    claim,
    claim_one,
    only,
    save,
    started,
    state,
    submit,
)

KEY = "doc:1"

Told = list[dict[str, int]]


class SuccessionSuite(StoreSuite):
    """`passed_on` is told the queues of those who became ready, and of nobody else."""

    @pytest.fixture
    def told(self, store: Store) -> Told:
        told: Told = []
        store.passed_on = lambda queues: told.append(dict(queues))
        return told

    async def test_the_next_for_a_lock_is_told_of_in_its_queue(
        self, store: Store, worker: WorkerId, told: Told
    ) -> None:
        first = await started(store, worker, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="b")

        await save(store, success(first))

        assert told == [{"b": 1}]

    async def test_nobody_is_told_of_where_nobody_waits(
        self, store: Store, worker: WorkerId, told: Told
    ) -> None:
        first = await started(store, worker, lock=KEY)
        other = await started(store, worker)

        await save(store, success(first), success(other))

        assert told == []

    async def test_a_new_task_is_its_submitter_s_to_tell_of(self, store: Store, told: Told) -> None:
        await submit(store, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="b", priority=Priority.HIGH)

        assert told == []

    async def test_several_are_told_of_together_and_counted(
        self, store: Store, worker: WorkerId, told: Told
    ) -> None:
        keys = [f"doc:{n}" for n in range(5)]
        await add(store, *[new_task(lock=key) for key in keys])
        claims = await claim(store, worker)
        for n, key in enumerate(keys):
            await submit(store, lock=key, queue="ab"[n % 2])

        await save(store, *[success(found) for found in claims])

        assert told == [{"a": 3, "b": 2}]

    async def test_one_that_requires_something_is_for_everybody_to_look_at(
        self, store: Store, worker: WorkerId, told: Told
    ) -> None:
        first = await started(store, worker, lock=KEY)
        await submit(store, lock=KEY, queue="a", requires=frozenset({"gpu"}))

        await save(store, success(first))

        assert told == [{"a": EVERYBODY}]

    async def test_a_task_handed_back_may_be_next_itself(
        self, store: Store, clock: FakeClock, worker: WorkerId, told: Told
    ) -> None:
        first = await started(store, worker, lock=KEY, queue="a")
        clock.advance(1)
        await submit(store, lock=KEY, queue="b")

        await save(store, release(first))

        assert told == [{"a": 1}]

    async def test_the_next_is_told_of_when_a_ready_holder_was_cancelled(
        self, store: Store, told: Told
    ) -> None:
        first = await submit(store, lock=KEY, queue="a")
        second = await submit(store, lock=KEY, queue="b")

        await store.cancel(only(first), limit=1)

        assert told == [{"b": 1}]
        assert await state(store, second) is State.QUEUED

    async def test_who_is_ended_by_the_same_call_is_not_told_of(
        self, store: Store, told: Told
    ) -> None:
        for queue in "abc":
            await submit(store, lock=KEY, queue=queue)

        await store.cancel(EVERYTHING, limit=MANY)

        assert not any(told)

    async def test_a_commit_tells_of_those_whom_it_lets_pass(
        self, store: Store, worker: WorkerId, told: Told
    ) -> None:
        first = await started(store, worker, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="b")
        also = Changes("one", records=[Put("note", "1", "{}")])

        await save(store, success(first)._replace(also=also))

        assert told == [{"b": 1}]

    async def test_telling_takes_nothing_from_whom_it_tells_of(
        self, store: Store, worker: WorkerId, told: Told
    ) -> None:
        first = await started(store, worker, lock=KEY, queue="a")
        second = await submit(store, lock=KEY, queue="b")

        await save(store, success(first))

        assert told
        assert (await claim_one(store, worker)).task_id == second
        assert await store.count(TaskFilter(states=frozenset({State.BLOCKED})), limit=1) == 0
