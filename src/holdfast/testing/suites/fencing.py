"""The fence: what a worker sends too late is refused, recorded and counted."""

from __future__ import annotations

import pytest

from holdfast.core.attempt import Claim, Refusal, Settlement
from holdfast.core.task import Reason, State, TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    failure,
    loss,
    new_tasks,
    release,
    stop,
    success,
    task_id,
    timeout,
)
from holdfast.testing.suites.base import (
    Settle,
    StoreSuite,
    add,
    attempts,
    claim,
    claim_one,
    enlist,
    events,
    get,
    kinds,
    only,
    save,
    started,
    state,
)
from holdfast.testing.suites.races import at_once, in_threads


class FenceSuite(StoreSuite):
    """A stale write is refused, recorded and counted; a repeat is not a stale write."""

    async def test_repeating_a_saved_settlement_is_silently_accepted(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await save(store, success(found, b"1"))

        await save(store, success(found, b"1"))

        assert (await store.stats()).refused == 0
        assert await kinds(store, found.task_id) == ["submitted"]
        assert len(await attempts(store, found.task_id)) == 1

    async def test_a_repeat_inside_one_batch_is_silently_accepted(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        await save(store, success(found), success(found))

        assert (await store.stats()).refused == 0

    async def test_a_repeat_is_accepted_though_the_task_has_moved_on(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await started(store, worker)
        await save(store, failure(first, backoff=0.0))
        second = await claim_one(store, await enlist(store))

        await save(store, failure(first, backoff=0.0))

        assert (await get(store, first.task_id)).attempt == second.attempt
        assert await state(store, first.task_id) is State.RUNNING
        assert (await get(store, first.task_id)).charged == 1
        await save(store, success(second))

    async def test_another_outcome_for_a_saved_attempt_is_refused(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await save(store, success(found, b"1"))

        refusals = await store.save([failure(found)])

        assert list(refusals) == [Refusal(found.task_id, 1, worker, None)]
        assert await state(store, found.task_id) is State.COMPLETED

    async def test_two_outcomes_for_one_attempt_in_one_batch_keep_the_first(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        refusals = await store.save([success(found), failure(found)])

        assert [r.attempt for r in refusals] == [1]
        assert await state(store, found.task_id) is State.COMPLETED

    async def test_a_rescued_worker_cannot_save_its_result(
        self, store: Store, worker: WorkerId
    ) -> None:
        stale = await started(store, worker)
        await store.bury(worker, beats=None)
        await save(store, loss(stale))
        other = await enlist(store, "other")
        fresh = await claim_one(store, other)

        refusals = await store.save([success(stale, b'"stale"')])

        assert list(refusals) == [Refusal(stale.task_id, 1, worker, other)]
        await save(store, success(fresh, b'"fresh"'))
        assert (await get(store, stale.task_id)).result == b'"fresh"'

    async def test_a_refused_result_leaves_an_event_and_is_counted(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        stale = await started(store, worker)
        await save(store, loss(stale))
        before = await get(store, stale.task_id)
        clock.advance(5)

        await store.save([success(stale)])

        event = (await events(store, stale.task_id))[-1]
        assert (event.kind, event.at, event.attempt, event.worker_id) == (
            "late_result_refused",
            clock.now,
            1,
            worker,
        )
        assert (await store.stats()).refused == 1
        assert await get(store, stale.task_id) == before

    async def test_a_result_for_an_earlier_attempt_of_the_same_worker_is_refused(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await started(store, worker)
        await save(store, release(first))
        await claim_one(store, worker)

        refusals = await store.save([success(first)])

        assert list(refusals) == [Refusal(first.task_id, 1, worker, worker)]
        assert await state(store, first.task_id) is State.RUNNING

    async def test_a_result_from_a_worker_that_never_had_the_task_is_refused(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        thief = await enlist(store, "thief")

        refusals = await store.save([success(found._replace(worker_id=thief))])

        assert list(refusals) == [Refusal(found.task_id, 1, thief, worker)]

    async def test_another_worker_cannot_pass_off_a_saved_settlement_as_its_own(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await save(store, success(found))
        thief = await enlist(store, "thief")

        refusals = await store.save([success(found._replace(worker_id=thief))])

        assert list(refusals) == [Refusal(found.task_id, 1, thief, None)]

    async def test_a_result_for_an_attempt_that_never_was_is_refused(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        refusals = await store.save([success(found._replace(attempt=2))])

        assert list(refusals) == [Refusal(found.task_id, 2, worker, worker)]

    async def test_a_result_for_a_task_that_waits_in_line_is_refused(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await save(store, release(found))

        refusals = await store.save([success(found)])

        assert list(refusals) == [Refusal(found.task_id, 1, worker, None)]
        assert await state(store, found.task_id) is State.QUEUED

    async def test_an_unknown_task_is_refused_without_an_event_but_counted(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        ghost = success(found._replace(task_id=task_id()))

        refusals = await store.save([ghost])

        assert list(refusals) == [Refusal(ghost.task_id, 1, worker, None)]
        assert await store.history(ghost.task_id) is None
        assert (await store.stats()).refused == 1

    async def test_the_rest_of_a_batch_is_written_beside_a_refusal(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(3))
        one, two, three = await claim(store, worker)
        await save(store, release(two))

        refusals = await store.save([success(one), success(two), success(three)])

        assert [r.task_id for r in refusals] == [two.task_id]
        assert await state(store, one.task_id) is State.COMPLETED
        assert await state(store, three.task_id) is State.COMPLETED

    @pytest.mark.parametrize("settle", [failure, timeout, loss, release])
    async def test_a_cancel_request_wins_over_another_attempt(
        self, store: Store, clock: FakeClock, worker: WorkerId, settle: Settle
    ) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)

        await save(store, settle(found))

        task = await get(store, found.task_id)
        assert (task.state, task.reason, task.finished_at) == (
            State.CANCELLED,
            Reason.CANCELLED,
            clock.now,
        )
        assert await claim(store, worker) == []

    async def test_a_success_wins_over_a_cancel_request(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)

        await save(store, success(found))

        assert await state(store, found.task_id) is State.COMPLETED

    async def test_a_repeat_of_a_settlement_written_as_cancelled_is_accepted(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)
        await save(store, failure(found))

        await save(store, failure(found))

        assert (await store.stats()).refused == 0

    async def test_of_many_different_outcomes_racing_for_one_attempt_one_is_written(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        outcomes = _different_outcomes(found)

        answers = await at_once(len(outcomes), lambda i: store.save([outcomes[i]]))

        assert sum(not refused for refused in answers) == 1
        assert (await store.stats()).refused == len(outcomes) - 1
        assert len(await attempts(store, found.task_id)) == 1

    async def test_of_threads_racing_to_end_one_attempt_one_wins(
        self, store: Store, worker: WorkerId
    ) -> None:
        claims = [await started(store, worker) for _ in range(20)]

        async def settle_all(index: int) -> list[tuple[TaskId, bool]]:
            done = []
            for found in claims:
                refused = await store.save([_different_outcomes(found)[index]])
                done.append((found.task_id, not refused))
            return done

        answers = [answer for some in await in_threads(4, settle_all) for answer in some]

        winners = [task for task, won in answers if won]
        assert sorted(winners) == sorted(c.task_id for c in claims)

    async def test_a_rescue_racing_with_a_late_result_leaves_one_outcome(
        self, store: Store, worker: WorkerId
    ) -> None:
        claims = [await started(store, worker) for _ in range(30)]
        await store.bury(worker, beats=None)

        async def act(index: int) -> bool:
            found = claims[index // 2]
            settlement = success(found) if index % 2 else loss(found)
            return not await store.save([settlement])

        won = await at_once(2 * len(claims), act)

        assert [a + b for a, b in zip(won[::2], won[1::2], strict=True)] == [1] * len(claims)
        states = {await state(store, c.task_id) for c in claims}
        assert states <= {State.COMPLETED, State.QUEUED}


def _different_outcomes(found: Claim) -> list[Settlement]:
    return [success(found), failure(found), timeout(found), stop(found), loss(found)]
