"""Settling: an outcome is written once, by the holder of the lease, with all that belongs to it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast.core.attempt import Claim
from holdfast.core.task import AttemptEnd, Cause, Reason, State, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    failure,
    loss,
    new_tasks,
    release,
    stop,
    success,
    task_error,
    timeout,
)
from holdfast.testing.suites.base import (
    OpenAnother,
    Settle,
    StoreSuite,
    add,
    attempts,
    claim,
    claim_one,
    ended,
    get,
    only,
    save,
    started,
    state,
)


async def _two_started(store: Store, worker: WorkerId) -> list[Claim]:
    await add(store, *new_tasks(2))
    return await claim(store, worker)


class SettleSuite(StoreSuite):
    """`save`: the state that core decided, the history and the lock's release, in one step."""

    async def test_a_success_completes_the_task_with_its_result(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        clock.advance(2)

        await save(store, success(found, b'{"sum":3}'))

        task = await get(store, found.task_id)
        assert (task.state, task.result, task.error, task.reason) == (
            State.COMPLETED,
            b'{"sum":3}',
            None,
            None,
        )
        assert (task.finished_at, task.charged) == (clock.now, 0)

    @pytest.mark.parametrize(
        "result",
        [
            b"null",
            '"füße \u2028 😀"'.encode(),
            b'"quoted \\" and \\u0000"',
            b"",
            b"\xff\xfe\x00",
            b"a\0b",
        ],
        ids=["null", "unicode", "escapes", "empty", "no text at all", "nul"],
    )
    async def test_a_result_comes_back_byte_by_byte(
        self, store: Store, worker: WorkerId, result: bytes
    ) -> None:
        found = await started(store, worker)

        await save(store, success(found, result))

        assert (await get(store, found.task_id)).result == result

    async def test_of_two_ends_of_one_attempt_in_a_batch_the_first_stands(
        self, store: Store, worker: WorkerId
    ) -> None:
        first, second = await _two_started(store, worker)

        refused = await store.save(
            [
                success(first, b"1"),
                failure(first),
                failure(second, retriable=False),
                success(second),
            ]
        )

        assert [(r.task_id, r.attempt) for r in refused] == [
            (first.task_id, 1),
            (second.task_id, 1),
        ]
        assert await state(store, first.task_id) is State.COMPLETED
        assert await state(store, second.task_id) is State.FAILED
        assert len(await attempts(store, first.task_id)) == 1

    async def test_a_failure_with_retries_left_waits_for_its_backoff(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        await save(store, failure(found, backoff=12.5))

        task = await get(store, found.task_id)
        assert (task.state, task.charged, task.error) == (State.RETRYING, 1, task_error())
        assert task.run_at == clock.now + timedelta(seconds=12.5)
        assert (task.finished_at, task.cause) == (None, Cause.RETRY)

    async def test_a_failure_that_is_not_retriable_fails_the_task(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, lambda c: failure(c, retriable=False))

        found = await get(store, task)
        assert (found.state, found.reason) == (State.FAILED, Reason.NOT_RETRIABLE)
        assert found.error == task_error(retriable=False)
        assert found.finished_at == clock.now

    async def test_the_last_failure_makes_a_dead_letter(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, failure, max_retries=1)
        clock.advance(10)
        await save(store, failure(await claim_one(store, worker), message="again"))

        found = await get(store, task)
        assert (found.state, found.reason, found.charged) == (
            State.DEAD_LETTER,
            Reason.RETRIES_EXHAUSTED,
            2,
        )
        assert found.error == task_error(message="again")

    async def test_a_timeout_is_retried_and_named_as_the_cause(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, timeout)
        clock.advance(10)

        assert (await claim_one(store, worker)).cause is Cause.TIMEOUT
        assert (await attempts(store, task))[0].ended is AttemptEnd.TIMEOUT

    async def test_a_last_timeout_makes_a_dead_letter_that_says_so(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, timeout, max_retries=0)

        found = await get(store, task)
        assert (found.state, found.reason) == (State.DEAD_LETTER, Reason.TIMEOUT)

    async def test_a_released_task_is_ready_again_and_charges_nothing(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, release)

        assert await state(store, task) is State.QUEUED
        again = await claim_one(store, worker)
        assert (again.attempt, again.charged, again.cause) == (2, 0, Cause.RELEASED)

    async def test_a_snoozed_task_waits_as_queued(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, lambda c: release(c, delay=30.0))

        found = await get(store, task)
        assert (found.state, found.run_at) == (State.QUEUED, clock.now + timedelta(seconds=30))
        assert await claim(store, worker) == []

    async def test_a_retry_without_delay_is_ready_at_once(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, lambda c: failure(c, backoff=0.0))

        assert await state(store, task) is State.QUEUED
        assert (await claim_one(store, worker)).cause is Cause.RETRY

    async def test_the_error_of_an_earlier_attempt_goes_when_the_task_completes(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, lambda c: failure(c, backoff=0.0))
        await save(store, success(await claim_one(store, worker)))

        assert (await get(store, task)).error is None
        assert (await attempts(store, task))[0].error == task_error()

    async def test_an_error_comes_back_whole(self, store: Store, worker: WorkerId) -> None:
        error: dict[str, Any] = {
            "type": "app.errors.Übel",
            "message": "zeile 1\nzeile 2 ☃ '\"",
            "traceback": "Traceback (most recent call last):\n  File …\n" * 200,
            "retriable": True,
        }

        task = await ended(store, worker, lambda c: failure(c, **error))

        assert (await get(store, task)).error == task_error(**error)
        assert (await attempts(store, task))[0].error == task_error(**error)

    async def test_a_batch_is_written_whole(self, store: Store, worker: WorkerId) -> None:
        await add(store, *new_tasks(self.some(300)))
        claims = await claim(store, worker)

        await save(store, *map(success, claims))

        assert {await state(store, c.task_id) for c in claims} == {State.COMPLETED}

    @pytest.mark.parametrize(("backoff", "then"), [(0.0, State.QUEUED), (10.0, State.RETRYING)])
    async def test_of_many_that_fail_alike_each_is_judged_by_its_own_task(
        self, store: Store, worker: WorkerId, backoff: float, then: State
    ) -> None:
        await add(store, *new_tasks(12), *new_tasks(2, lock="one"))
        claims = await claim(store, worker)
        asked, late, *others = claims
        await store.cancel(only(asked.task_id), limit=1)
        await save(store, success(late))
        failures = [failure(each, backoff=backoff) for each in claims]

        for _ in range(2):  # the same again is no news
            assert [refusal.task_id for refusal in await store.save(failures)] == [late.task_id]

        assert await state(store, asked.task_id) is State.CANCELLED
        assert await state(store, late.task_id) is State.COMPLETED
        for each in others:
            task = await get(store, each.task_id)
            assert (task.state, task.charged, task.error) == (then, 1, task_error())
            (first,) = await attempts(store, each.task_id)
            assert (first.ended, first.charged, first.error) == (
                AttemptEnd.ERROR,
                True,
                task_error(),
            )

    async def test_many_that_fail_alike_and_are_due_are_claimed_again(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(20))
        first = await claim(store, worker)
        await save(store, *(failure(each, backoff=0.0) for each in first))

        again = await claim(store, worker)

        assert [each.task_id for each in again] == [each.task_id for each in first]
        assert {(each.attempt, each.charged, each.cause) for each in again} == {(2, 1, Cause.RETRY)}

    async def test_an_empty_batch_is_fine(self, store: Store) -> None:
        assert list(await store.save([])) == []

    async def test_a_batch_may_mix_every_outcome(self, store: Store, worker: WorkerId) -> None:
        await add(store, *new_tasks(6))
        claims = await claim(store, worker)
        settles: tuple[Settle, ...] = (success, failure, timeout, loss, release, stop)

        await save(store, *(settle(c) for settle, c in zip(settles, claims, strict=True)))

        assert [await state(store, c.task_id) for c in claims] == [
            State.COMPLETED,
            State.RETRYING,
            State.RETRYING,
            State.QUEUED,
            State.QUEUED,
            State.CANCELLED,
        ]

    async def test_a_task_may_be_settled_by_another_handle_than_claimed_it(
        self, store: Store, worker: WorkerId, open_another: OpenAnother
    ) -> None:
        found = await started(store, worker)
        other = await open_another()

        assert list(await other.save([success(found)])) == []
        assert await state(store, found.task_id) is State.COMPLETED
