"""Unique keys: at most one unfinished task for a (name, key)."""

from __future__ import annotations

import pytest

from holdfast.core.task import Added, State, SubmitOutcome, TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import HEAD_STARTS, failure, loss, new_task, release, success
from holdfast.testing.suites.base import (
    Settle,
    StoreSuite,
    add,
    all_ids,
    claim_one,
    ended,
    only,
    state,
    submit,
)
from holdfast.testing.suites.races import at_once, in_threads


async def _second(store: Store, **given: object) -> Added:
    (answer,) = await add(store, new_task(**{"unique_key": "u"} | given))
    return answer


class UniqueKeySuite(StoreSuite):
    """A second submit of a unique key returns the first task, and says so."""

    async def test_a_second_submit_returns_the_first_task_and_says_so(self, store: Store) -> None:
        first = await submit(store, unique_key="u")

        second = await _second(store)

        assert second == Added(first, SubmitOutcome.UNIQUE_KEY, State.QUEUED)
        assert await all_ids(store) == [first]

    async def test_a_unique_key_belongs_to_the_name_of_its_task(self, store: Store) -> None:
        await submit(store, name="one", unique_key="u")

        assert (await _second(store, name="two")).created

    async def test_a_unique_key_holds_across_queues(self, store: Store) -> None:
        first = await submit(store, unique_key="u", queue="a")

        assert (await _second(store, queue="b")).task_id == first

    async def test_tasks_without_a_unique_key_never_collide(self, store: Store) -> None:
        answers = await add(store, new_task(), new_task())

        assert [answer.created for answer in answers] == [True, True]

    async def test_a_unique_key_holds_while_its_task_runs(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await submit(store, unique_key="u")
        await claim_one(store, worker)

        assert await _second(store) == Added(first, SubmitOutcome.UNIQUE_KEY, State.RUNNING)

    async def test_a_unique_key_holds_while_its_task_waits_for_a_retry(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await ended(store, worker, failure, unique_key="u")

        assert await _second(store) == Added(first, SubmitOutcome.UNIQUE_KEY, State.RETRYING)

    async def test_a_unique_key_holds_while_its_task_is_blocked(self, store: Store) -> None:
        await submit(store, lock="doc:1")
        blocked = await submit(store, lock="doc:1", unique_key="u")

        assert await _second(store) == Added(blocked, SubmitOutcome.UNIQUE_KEY, State.BLOCKED)

    @pytest.mark.parametrize("settle", [release, loss])
    async def test_a_unique_key_holds_when_its_task_is_handed_back(
        self, store: Store, worker: WorkerId, settle: Settle
    ) -> None:
        first = await ended(store, worker, settle, unique_key="u")

        assert (await _second(store)).task_id == first

    async def test_a_unique_key_is_free_when_its_task_completed(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await ended(store, worker, success, unique_key="u")

        second = await _second(store)

        assert second.created
        assert second.task_id != first

    async def test_a_unique_key_is_free_when_its_task_failed(
        self, store: Store, worker: WorkerId
    ) -> None:
        await ended(store, worker, lambda c: failure(c, retriable=False), unique_key="u")

        assert (await _second(store)).created

    async def test_a_unique_key_is_free_when_its_task_is_a_dead_letter(
        self, store: Store, worker: WorkerId
    ) -> None:
        dead = await ended(store, worker, failure, unique_key="u", max_retries=0)

        assert await state(store, dead) is State.DEAD_LETTER
        assert (await _second(store)).created

    async def test_a_unique_key_is_free_when_its_task_was_cancelled(self, store: Store) -> None:
        first = await submit(store, unique_key="u")
        await store.cancel(only(first), limit=1)

        assert (await _second(store)).created

    async def test_a_unique_key_is_free_when_its_task_expired(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await submit(store, unique_key="u", expires_in=1.0)
        clock.advance(1)
        await store.claim(worker, queues=None, capabilities=frozenset(), limit=1)

        assert (await _second(store)).created

    async def test_a_requeued_task_has_its_unique_key_again(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await ended(store, worker, success, unique_key="u")
        await store.requeue(only(first), limit=1, head_starts=HEAD_STARTS)

        assert (await _second(store)).task_id == first

    async def test_discarding_an_ended_task_leaves_the_key_with_its_successor(
        self, store: Store, worker: WorkerId
    ) -> None:
        old = await ended(store, worker, success, unique_key="u")
        new = await submit(store, unique_key="u")
        await store.discard(only(old), limit=1)

        assert (await _second(store)).task_id == new

    async def test_a_unique_key_holds_inside_one_batch(self, store: Store) -> None:
        first, second = new_task(unique_key="u"), new_task(unique_key="u")

        answers = await add(store, first, second)

        assert answers == [
            Added(first.id, SubmitOutcome.CREATED, State.QUEUED),
            Added(first.id, SubmitOutcome.UNIQUE_KEY, State.QUEUED),
        ]

    async def test_one_of_many_racing_submits_of_a_unique_key_creates(self, store: Store) -> None:
        answers = await at_once(50, lambda _: _second(store))

        assert sum(answer.created for answer in answers) == 1
        assert len({answer.task_id for answer in answers}) == 1

    async def test_one_of_many_threads_racing_for_a_unique_key_creates(self, store: Store) -> None:
        async def submit_some(_: int) -> list[Added]:
            return [await _second(store) for _ in range(10)]

        answers = [answer for some in await in_threads(4, submit_some) for answer in some]

        assert sum(answer.created for answer in answers) == 1
        assert await _ids_of_unfinished(store) == {answers[0].task_id}


async def _ids_of_unfinished(store: Store) -> set[TaskId]:
    return {task for task in await all_ids(store) if await state(store, task) is State.QUEUED}
