"""Dead letters and second chances: requeue one, by filter, paced; or discard."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.core.attempt import Report
from holdfast.core.query import TaskFilter
from holdfast.core.task import Cause, Cost, Priority, Progress, State, Task, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    HEAD_STARTS,
    failure,
    loss,
    new_task,
    new_tasks,
    release,
    stop,
    success,
    task_error,
    task_id,
)
from holdfast.testing.suites.base import (
    EVERYTHING,
    MANY,
    Settle,
    StoreSuite,
    add,
    all_ids,
    attempts,
    claim,
    claim_ids,
    claim_one,
    ended,
    events,
    get,
    kinds,
    only,
    save,
    started,
    state,
    submit,
)
from holdfast.testing.suites.races import at_once

DEAD = TaskFilter(states=frozenset({State.DEAD_LETTER}))


async def _requeue(
    store: Store, where: TaskFilter = EVERYTHING, *, limit: int = MANY, pace: float | None = None
) -> list[Task]:
    found = await store.requeue(where, limit=limit, head_starts=HEAD_STARTS, pace=pace)
    return list(found)


async def _dead_letters(store: Store, worker: WorkerId, number: int) -> list[Task]:
    batch = new_tasks(number, max_retries=0)
    await add(store, *batch)
    await save(store, *map(failure, await claim(store, worker)))
    return [await get(store, new.id) for new in batch]


class RequeueSuite(StoreSuite):
    """`requeue`: an operator's word starts a task again, with a clean slate and its history."""

    async def test_a_dead_letter_starts_again_with_a_clean_slate(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        (dead,) = await _dead_letters(store, worker, 1)
        clock.advance(60)

        (again,) = await _requeue(store, only(dead.id))

        assert again == await get(store, dead.id)
        assert (again.state, again.cause) == (State.QUEUED, Cause.OPERATOR)
        assert (again.charged, again.crash_count, again.attempt) == (0, 0, 1)
        assert (again.error, again.reason, again.finished_at) == (None, None, None)
        assert again.run_at == clock.now
        assert again.rank == clock.now_us() - HEAD_STARTS["normal"]

    async def test_the_next_attempt_has_all_its_retries_and_names_the_operator(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, lambda c: loss(c, crash_limit=1), max_retries=2)
        await _requeue(store, only(task))

        found = await claim_one(store, worker)

        assert (found.attempt, found.charged, found.crash_count) == (2, 0, 0)
        assert found.cause is Cause.OPERATOR

    async def test_earlier_attempts_stay_in_the_history_and_an_event_is_added(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        (dead,) = await _dead_letters(store, worker, 1)
        before = await attempts(store, dead.id)
        clock.advance(1)

        await _requeue(store, only(dead.id))

        assert await attempts(store, dead.id) == before
        event = (await events(store, dead.id))[-1]
        assert (event.kind, event.at) == ("requeued", clock.now)

    @pytest.mark.parametrize(
        "settle",
        [success, stop, lambda c: failure(c, retriable=False)],
        ids=["completed", "cancelled", "failed"],
    )
    async def test_every_ended_task_can_start_again(
        self, store: Store, worker: WorkerId, settle: Settle
    ) -> None:
        task = await ended(store, worker, settle)

        (again,) = await _requeue(store, only(task))

        assert (again.state, again.result) == (State.QUEUED, None)
        assert await claim_ids(store, worker) == [task]

    async def test_progress_goes_and_cost_stays(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)
        report = Report(found.task_id, 1, worker, Progress(done=1), Cost(units=2.0))
        await store.report([report])
        await save(store, success(found))

        (again,) = await _requeue(store, only(found.task_id))

        assert (again.progress, again.cost) == (None, Cost(units=2.0))

    async def test_a_cancelled_task_starts_again_without_its_cancel_request(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)
        await save(store, stop(found))

        (again,) = await _requeue(store, only(found.task_id))
        restarted = await claim_one(store, worker)

        assert (again.cancel_requested, restarted.cancel_requested) == (False, False)
        await save(store, failure(restarted))
        assert await state(store, found.task_id) is State.RETRYING

    async def test_an_expired_task_starts_again_without_its_expiry(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, expires_in=1.0)
        clock.advance(2)
        await claim(store, worker)

        (again,) = await _requeue(store, only(task))

        assert again.expires_at is None
        assert await claim_ids(store, worker) == [task]

    async def test_the_fresh_rank_follows_the_priority(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        high = await ended(store, worker, success, priority=Priority.HIGH)
        clock.advance(5)

        (again,) = await store.requeue(
            only(high), limit=1, head_starts={p.value: 10 for p in Priority} | {"high": 77}
        )

        assert again.rank == clock.now_us() - 77

    async def test_a_retrying_task_is_merely_hurried(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, failure, expires_in=100.0)
        before = await get(store, task)
        clock.advance(1)

        (hurried,) = await _requeue(store, only(task))

        assert (hurried.state, hurried.run_at) == (State.QUEUED, clock.now)
        assert (hurried.rank, hurried.charged, hurried.error) == (before.rank, 1, task_error())
        assert (hurried.cause, hurried.expires_at) == (Cause.RETRY, before.expires_at)
        assert await kinds(store, task) == ["submitted"]
        assert await claim_ids(store, worker) == [task]

    async def test_a_queued_task_that_waits_for_its_time_is_hurried_too(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, delay=3600.0, expires_in=7200.0, unique_key="u")
        before = await get(store, task)
        other = await submit(store)
        clock.advance(1)
        late = await submit(store)

        (hurried,) = await _requeue(store, only(task))

        assert (hurried.state, hurried.run_at) == (State.QUEUED, clock.now)
        assert hurried.rank == clock.now_us() - HEAD_STARTS["normal"]
        assert (hurried.cause, hurried.expires_at) == (Cause.SUBMITTED, before.expires_at)
        assert await kinds(store, task) == ["submitted"]
        assert await claim_ids(store, worker) == [other, task, late]

    async def test_an_attempt_that_was_handed_back_for_later_is_hurried_with_its_rank(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, lambda c: release(c, 1e6))
        before = await get(store, task)
        other = await submit(store)
        clock.advance(1)

        (hurried,) = await _requeue(store, only(task))

        assert (hurried.state, hurried.cause) == (State.QUEUED, Cause.RELEASED)
        assert hurried.rank == before.rank
        assert await claim_ids(store, worker) == [task, other]

    async def test_one_that_is_hurried_stands_before_its_gates(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder = await started(store, worker, lock="doc:1")
        task = await submit(store, lock="doc:1", delay=60.0)

        (hurried,) = await _requeue(store, only(task))
        assert hurried.state is State.BLOCKED
        await save(store, success(holder))

        assert await claim_ids(store, worker) == [task]

    async def test_a_paced_queued_task_waits_for_its_turn(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        tasks = [await submit(store, delay=900.0), await submit(store, delay=1.0)]
        ready = await submit(store)

        hurried = await _requeue(store, pace=0.5)

        assert [(t.id, t.run_at - clock.now) for t in hurried] == [
            (tasks[0], timedelta(seconds=2)),
            (tasks[1], timedelta(seconds=4)),
        ]
        assert await claim_ids(store, worker) == [ready]
        clock.advance(4)
        assert await claim_ids(store, worker) == [tasks[1], tasks[0]]

    async def test_tasks_that_are_ready_running_or_blocked_are_passed_over(
        self, store: Store, worker: WorkerId
    ) -> None:
        await started(store, worker, lock="doc:1")
        await submit(store, lock="doc:1")
        await submit(store)

        assert await _requeue(store) == []
        assert await _requeue(store, TaskFilter(states=frozenset({State.QUEUED}))) == []

    async def test_a_task_whose_unique_key_is_taken_is_passed_over(
        self, store: Store, worker: WorkerId
    ) -> None:
        old = await ended(store, worker, success, unique_key="u")
        await submit(store, unique_key="u")

        assert await _requeue(store, only(old)) == []
        assert await state(store, old) is State.COMPLETED

    async def test_of_two_dead_letters_with_one_unique_key_the_older_starts(
        self, store: Store, worker: WorkerId
    ) -> None:
        one = await ended(store, worker, failure, unique_key="u", max_retries=0)
        two = await ended(store, worker, failure, unique_key="u", max_retries=0)

        assert [t.id for t in await _requeue(store, DEAD)] == [one]
        assert await state(store, two) is State.DEAD_LETTER

    async def test_the_same_unique_key_of_another_name_does_not_stand_in_the_way(
        self, store: Store, worker: WorkerId
    ) -> None:
        old = await ended(store, worker, success, unique_key="u", name="one")
        await submit(store, unique_key="u", name="two")

        assert [t.id for t in await _requeue(store, only(old))] == [old]

    async def test_requeueing_by_filter_takes_only_what_matches(
        self, store: Store, worker: WorkerId
    ) -> None:
        bug = await ended(store, worker, lambda c: failure(c, type="Bug"), max_retries=0)
        await ended(store, worker, lambda c: failure(c, type="Net"), max_retries=0)

        where = TaskFilter(states=DEAD.states, error_type="Bug")

        assert [t.id for t in await _requeue(store, where)] == [bug]

    async def test_the_limit_counts_requeued_tasks_oldest_first(
        self, store: Store, worker: WorkerId
    ) -> None:
        dead = await _dead_letters(store, worker, 5)
        await submit(store)

        first = await _requeue(store, limit=3)
        rest = await _requeue(store, limit=3)

        assert [t.id for t in first + rest] == [t.id for t in dead]

    async def test_the_limit_does_not_count_tasks_that_are_passed_over(
        self, store: Store, worker: WorkerId
    ) -> None:
        await ended(store, worker, success, unique_key="u")
        await submit(store, unique_key="u")
        await claim(store, worker)
        free = await ended(store, worker, success)

        assert [t.id for t in await _requeue(store, limit=1)] == [free]

    async def test_a_limit_of_zero_requeues_nothing(self, store: Store, worker: WorkerId) -> None:
        await _dead_letters(store, worker, 2)

        assert await _requeue(store, limit=0) == []

    async def test_a_paced_replay_spreads_the_tasks_oldest_first(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        dead = await _dead_letters(store, worker, 4)

        again = await _requeue(store, DEAD, pace=2.0)

        assert [t.id for t in again] == [t.id for t in dead]
        assert [t.run_at - clock.now for t in again] == [
            timedelta(seconds=0.5 * n) for n in (1, 2, 3, 4)
        ]
        assert [t.rank for t in again] == [
            clock.now_us() + 500_000 * n - HEAD_STARTS["normal"] for n in (1, 2, 3, 4)
        ]

    async def test_a_paced_replay_starts_its_tasks_one_after_another(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        dead = await _dead_letters(store, worker, 3)
        await _requeue(store, DEAD, pace=1.0)

        got = [await claim_ids(store, worker)]
        for _ in range(3):
            clock.advance(1)
            got.append(await claim_ids(store, worker))

        assert got == [[], *([t.id] for t in dead)]

    async def test_a_paced_retrying_task_keeps_waiting_as_such(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, lambda c: failure(c, backoff=500.0))

        (hurried,) = await _requeue(store, only(task), pace=0.5)

        assert hurried.state is State.RETRYING
        assert hurried.run_at == clock.now + timedelta(seconds=2)

    async def test_nothing_matches_an_unknown_id(self, store: Store) -> None:
        assert await _requeue(store, only(task_id())) == []

    async def test_one_of_many_racing_replays_starts_the_task_again(
        self, store: Store, worker: WorkerId
    ) -> None:
        (dead,) = await _dead_letters(store, worker, 1)

        answers = await at_once(20, lambda _: _requeue(store, only(dead.id)))

        assert sum(len(answer) for answer in answers) == 1
        assert await kinds(store, dead.id) == ["submitted", "requeued"]


class DiscardSuite(StoreSuite):
    """`discard`: ended tasks are forgotten, history and all."""

    async def test_a_discarded_task_is_forgotten_with_its_history(
        self, store: Store, worker: WorkerId
    ) -> None:
        (dead,) = await _dead_letters(store, worker, 1)

        assert await store.discard(only(dead.id), limit=1) == 1

        assert await store.get(dead.id) is None
        assert await store.history(dead.id) is None
        assert await store.standing(dead.id) is None

    async def test_unfinished_tasks_are_left_alone(self, store: Store, worker: WorkerId) -> None:
        await ended(store, worker, failure)
        await started(store, worker, lock="doc:1")
        await submit(store, lock="doc:1")
        await submit(store)

        assert await store.discard(EVERYTHING, limit=MANY) == 0
        assert len(await all_ids(store)) == 4

    async def test_discarding_by_filter_takes_only_what_matches(
        self, store: Store, worker: WorkerId
    ) -> None:
        done = await ended(store, worker, success)
        await _dead_letters(store, worker, 3)

        assert await store.discard(DEAD, limit=MANY) == 3
        assert await all_ids(store) == [done]

    async def test_the_limit_counts_discarded_tasks_oldest_first(
        self, store: Store, worker: WorkerId
    ) -> None:
        running = await started(store, worker)
        dead = await _dead_letters(store, worker, 3)

        assert await store.discard(EVERYTHING, limit=2) == 2
        assert await all_ids(store) == [dead[2].id, running.task_id]
        assert await store.discard(EVERYTHING, limit=0) == 0

    async def test_a_late_result_for_a_discarded_task_is_refused(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await save(store, success(found))
        await store.discard(only(found.task_id), limit=1)

        assert [r.task_id for r in await store.save([failure(found)])] == [found.task_id]

    async def test_the_id_of_a_discarded_task_can_be_submitted_anew(
        self, store: Store, worker: WorkerId
    ) -> None:
        new = new_task()
        await add(store, new)
        await save(store, success(await claim_one(store, worker)))
        await store.discard(only(new.id), limit=1)

        await add(store, new)

        assert await attempts(store, new.id) == ()
        assert (await claim_one(store, worker)).attempt == 1
