"""Idempotency keys: the same submit within the window is the same task."""

from __future__ import annotations

import pytest

from holdfast.core.task import Added, State, SubmitOutcome, WorkerId
from holdfast.errors import IdempotencyConflict
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import WINDOW, new_task, success
from holdfast.testing.suites.base import (
    StoreSuite,
    add,
    all_ids,
    ended,
    only,
    submit,
)
from holdfast.testing.suites.races import at_once, in_threads


async def _send(store: Store, body: str = "body", **given: object) -> Added:
    given = {"idempotency_key": "order-7", "fingerprint": body} | given
    (answer,) = await add(store, new_task(**given))
    return answer


class IdempotencySuite(StoreSuite):
    """A key seen within the window answers with the task it made; another body is refused."""

    async def test_the_same_key_and_body_answers_with_the_first_task(self, store: Store) -> None:
        first = await _send(store)

        second = await _send(store)

        assert second == Added(first.task_id, SubmitOutcome.IDEMPOTENCY_KEY, State.QUEUED)
        assert await all_ids(store) == [first.task_id]

    async def test_a_key_outlives_its_finished_task(self, store: Store, worker: WorkerId) -> None:
        first = await ended(store, worker, success, idempotency_key="order-7", fingerprint="body")

        second = await _send(store)

        assert second == Added(first, SubmitOutcome.IDEMPOTENCY_KEY, State.COMPLETED)

    async def test_the_same_key_with_another_body_is_refused_and_names_the_first(
        self, store: Store
    ) -> None:
        first = await _send(store)

        with pytest.raises(IdempotencyConflict) as refusal:
            await _send(store, "another body")

        assert (refusal.value.key, refusal.value.task_id) == ("order-7", first.task_id)
        assert await all_ids(store) == [first.task_id]

    async def test_a_key_counts_until_its_window_ends(self, store: Store, clock: FakeClock) -> None:
        first = await _send(store)

        clock.advance(WINDOW - 0.000_001)

        assert (await _send(store)).task_id == first.task_id

    async def test_a_key_is_free_again_after_its_window(
        self, store: Store, clock: FakeClock
    ) -> None:
        first = await _send(store)

        clock.advance(WINDOW)

        second = await _send(store, "another body")
        assert second.created
        assert sorted(await all_ids(store)) == [first.task_id, second.task_id]

    async def test_a_key_used_again_after_its_window_names_the_newer_task(
        self, store: Store, clock: FakeClock
    ) -> None:
        await _send(store)
        clock.advance(WINDOW)
        second = await _send(store)
        clock.advance(WINDOW - 1)

        assert await _send(store) == Added(
            second.task_id, SubmitOutcome.IDEMPOTENCY_KEY, State.QUEUED
        )

    async def test_repeats_do_not_prolong_the_window(self, store: Store, clock: FakeClock) -> None:
        await _send(store)
        clock.advance(WINDOW - 1)
        await _send(store)

        clock.advance(1)

        assert (await _send(store)).created

    async def test_keys_are_shared_by_all_names_and_queues(self, store: Store) -> None:
        first = await _send(store, name="one", queue="a")

        assert (await _send(store, name="two", queue="b")).task_id == first.task_id

    async def test_different_keys_are_different_tasks(self, store: Store) -> None:
        await _send(store)

        assert (await _send(store, idempotency_key="order-8")).created

    async def test_a_key_without_a_fingerprint_matches_itself(self, store: Store) -> None:
        first = await submit(store, idempotency_key="k")

        (second,) = await add(store, new_task(idempotency_key="k"))

        assert second.task_id == first

    async def test_a_key_holds_inside_one_batch(self, store: Store) -> None:
        batch = [new_task(idempotency_key="k", fingerprint="f") for _ in range(3)]

        answers = await add(store, *batch)

        assert [answer.outcome for answer in answers] == [
            SubmitOutcome.CREATED,
            SubmitOutcome.IDEMPOTENCY_KEY,
            SubmitOutcome.IDEMPOTENCY_KEY,
        ]
        assert {answer.task_id for answer in answers} == {batch[0].id}

    async def test_two_bodies_with_one_key_in_one_batch_are_refused_whole(
        self, store: Store
    ) -> None:
        with pytest.raises(IdempotencyConflict):
            await add(
                store,
                new_task(),
                new_task(idempotency_key="k", fingerprint="one"),
                new_task(idempotency_key="k", fingerprint="two"),
            )

        assert await all_ids(store) == []
        assert (await _send(store, "two", idempotency_key="k")).created

    async def test_the_idempotency_key_is_looked_at_before_the_unique_key(
        self, store: Store, worker: WorkerId
    ) -> None:
        keyed = await ended(store, worker, success, idempotency_key="order-7", fingerprint="body")
        await submit(store, unique_key="u")

        answer = await _send(store, unique_key="u")

        assert answer == Added(keyed, SubmitOutcome.IDEMPOTENCY_KEY, State.COMPLETED)

    async def test_a_submit_stopped_by_its_unique_key_does_not_use_up_its_idempotency_key(
        self, store: Store
    ) -> None:
        first = await submit(store, unique_key="u")
        stopped = await _send(store, unique_key="u")
        await store.cancel(only(first), limit=1)

        again = await _send(store, unique_key="u")

        assert stopped.outcome is SubmitOutcome.UNIQUE_KEY
        assert again.created

    async def test_a_discarded_task_takes_its_key_along(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await ended(store, worker, success, idempotency_key="order-7", fingerprint="body")
        await store.discard(only(first), limit=1)

        assert (await _send(store, "another body")).created

    async def test_one_of_many_racing_submits_of_a_key_creates(self, store: Store) -> None:
        answers = await at_once(100, lambda _: _send(store))

        assert sum(answer.created for answer in answers) == 1
        assert len({answer.task_id for answer in answers}) == 1

    async def test_one_of_many_threads_racing_with_a_key_creates(self, store: Store) -> None:
        async def send_some(_: int) -> list[Added]:
            return [await _send(store) for _ in range(10)]

        answers = [answer for some in await in_threads(4, send_some) for answer in some]

        assert sum(answer.created for answer in answers) == 1
        assert await all_ids(store) == [answers[0].task_id]
