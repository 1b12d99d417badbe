"""History: every attempt with its cause and end, every event, kept after success."""

from __future__ import annotations

from holdfast.core.attempt import Attempt, Report
from holdfast.core.task import AttemptEnd, Cause, State, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    HEAD_STARTS,
    failure,
    loss,
    release,
    stop,
    success,
    task_error,
    task_id,
    timeout,
)
from holdfast.testing.suites.base import (
    StoreSuite,
    attempts,
    claim_one,
    enlist,
    events,
    get,
    history,
    kinds,
    only,
    save,
    started,
    state,
    submit,
)


class HistorySuite(StoreSuite):
    """`history`: what happened, oldest first."""

    async def test_an_unknown_task_has_no_history(self, store: Store) -> None:
        assert await store.history(task_id()) is None

    async def test_a_new_task_has_no_attempts(self, store: Store) -> None:
        task = await submit(store)

        assert (await history(store, task)).attempts == ()

    async def test_an_attempt_tells_cause_worker_times_end_and_error(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        began = clock.now
        clock.advance(2.5)
        await save(store, failure(found))

        (attempt,) = await attempts(store, found.task_id)

        assert attempt == Attempt(
            number=1,
            cause=Cause.SUBMITTED,
            worker_id=worker,
            started_at=began,
            ended_at=clock.now,
            ended=AttemptEnd.ERROR,
            charged=True,
            error=task_error(),
        )
        assert attempt.seconds == 2.5

    async def test_a_running_attempt_is_in_the_history_without_an_end(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        first = await started(store, worker)
        await save(store, release(first))
        await claim_one(store, worker)

        assert (await attempts(store, first.task_id))[-1] == Attempt(
            number=2, cause=Cause.RELEASED, worker_id=worker, started_at=clock.now
        )

    async def test_a_long_life_is_told_in_order_with_a_cause_for_every_start(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, max_retries=5)
        for settle in (failure, timeout, loss, release, success):
            await save(store, settle(await claim_one(store, worker)))
            clock.advance(10)
        await store.requeue(only(task), limit=1, head_starts=HEAD_STARTS)
        await save(store, success(await claim_one(store, worker)))

        told = await attempts(store, task)

        assert [(a.number, a.cause, a.ended, a.charged) for a in told] == [
            (1, Cause.SUBMITTED, AttemptEnd.ERROR, True),
            (2, Cause.RETRY, AttemptEnd.TIMEOUT, True),
            (3, Cause.TIMEOUT, AttemptEnd.WORKER_LOST, False),
            (4, Cause.WORKER_LOST, AttemptEnd.RELEASED, False),
            (5, Cause.RELEASED, AttemptEnd.COMPLETED, False),
            (6, Cause.OPERATOR, AttemptEnd.COMPLETED, False),
        ]

    async def test_the_last_charged_attempt_of_a_dead_letter_says_so(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker, max_retries=0)
        await save(store, failure(found))

        (attempt,) = await attempts(store, found.task_id)
        assert attempt.charged is True

    async def test_attempts_name_the_worker_that_ran_each(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await save(store, release(found))
        other = await enlist(store, "other")
        await claim_one(store, other)

        assert [a.worker_id for a in await attempts(store, found.task_id)] == [worker, other]

    async def test_a_stopped_attempt_ends_as_cancelled(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)
        await save(store, stop(found))

        (attempt,) = await attempts(store, found.task_id)
        assert (attempt.ended, attempt.charged) == (AttemptEnd.CANCELLED, False)

    async def test_a_failure_written_as_cancelled_tells_its_error_and_how_it_ended(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)
        await save(store, failure(found))

        (attempt,) = await attempts(store, found.task_id)
        assert (attempt.ended, attempt.error) == (AttemptEnd.ERROR, task_error())
        assert await state(store, found.task_id) is State.CANCELLED

    async def test_success_deletes_nothing(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.report([Report(found.task_id, 1, worker, logs=("hello",))])
        await save(store, success(found))
        clock.advance(86_400)

        assert len(await attempts(store, found.task_id)) == 1
        assert await kinds(store, found.task_id) == ["submitted", "log"]

    async def test_events_are_told_in_the_order_they_happened(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        clock.advance(1)
        await store.report([Report(found.task_id, 1, worker, logs=("one",))])
        await store.cancel(only(found.task_id), limit=1)
        clock.advance(1)
        await save(store, stop(found))
        await store.save([success(found)])
        await store.requeue(only(found.task_id), limit=1, head_starts=HEAD_STARTS)
        await store.cancel(only(found.task_id), limit=1)

        told = await events(store, found.task_id)

        assert [event.kind for event in told] == [
            "submitted",
            "log",
            "cancel_requested",
            "late_result_refused",
            "requeued",
            "cancelled",
        ]
        times = [event.at for event in told]
        assert times == sorted(times)

    async def test_every_refused_result_is_told(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)
        await save(store, loss(found))

        await store.save([success(found)])
        await store.save([success(found), timeout(found)])

        assert await kinds(store, found.task_id) == ["submitted"] + ["late_result_refused"] * 3
        assert (await store.stats()).refused == 3

    async def test_the_task_shows_its_last_worker_and_start_after_it_ended(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        began = clock.now
        clock.advance(5)
        await save(store, success(found))

        task = await get(store, found.task_id)
        assert (task.worker_id, task.started_at, task.attempt) == (worker, began, 1)
