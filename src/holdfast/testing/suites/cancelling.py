"""Cancelling: what has not started ends at once, what runs is asked to stop."""

from __future__ import annotations

import pytest

from holdfast.core.query import TaskFilter
from holdfast.core.task import Reason, State, TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import failure, new_tasks, stop, success
from holdfast.testing.suites.base import (
    EVERYTHING,
    MANY,
    Settle,
    StoreSuite,
    add,
    attempts,
    claim,
    claim_ids,
    ended,
    enlist,
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


async def _to_stop(store: Store, worker: WorkerId) -> list[TaskId]:
    return list((await store.requests(worker)).cancel)


class CancelSuite(StoreSuite):
    """`cancel`, and what `requests` says of it."""

    async def test_a_queued_task_ends_as_cancelled_and_never_starts(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store)
        clock.advance(1)

        (cancelled,) = await store.cancel(only(task), limit=1)

        assert cancelled == await get(store, task)
        assert (cancelled.state, cancelled.reason) == (State.CANCELLED, Reason.CANCELLED)
        assert (cancelled.finished_at, cancelled.cancel_requested) == (clock.now, False)
        assert await claim(store, worker) == []

    async def test_cancelling_leaves_an_event(self, store: Store, clock: FakeClock) -> None:
        task = await submit(store)
        clock.advance(1)

        await store.cancel(only(task), limit=1)

        event = (await events(store, task))[-1]
        assert (event.kind, event.at) == ("cancelled", clock.now)

    async def test_a_waiting_task_ends_as_cancelled(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, delay=60.0)

        await store.cancel(only(task), limit=1)
        clock.advance(60)

        assert await claim(store, worker) == []
        assert await state(store, task) is State.CANCELLED

    async def test_a_retrying_task_ends_as_cancelled_and_keeps_its_error(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, failure)

        (cancelled,) = await store.cancel(only(task), limit=1)
        clock.advance(60)

        assert cancelled.state is State.CANCELLED
        assert cancelled.error is not None
        assert await claim(store, worker) == []

    async def test_a_blocked_task_ends_as_cancelled(self, store: Store) -> None:
        await submit(store, lock="doc:1")
        blocked = await submit(store, lock="doc:1")

        (cancelled,) = await store.cancel(only(blocked), limit=1)

        assert cancelled.state is State.CANCELLED

    async def test_a_running_task_is_asked_to_stop(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        clock.advance(1)

        (asked,) = await store.cancel(only(found.task_id), limit=1)

        assert (asked.state, asked.cancel_requested) == (State.RUNNING, True)
        event = (await events(store, found.task_id))[-1]
        assert (event.kind, event.at) == ("cancel_requested", clock.now)

    async def test_a_worker_learns_which_of_its_tasks_to_stop(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(3))
        one, two, three = await claim(store, worker)
        other = await enlist(store)
        foreign = await started(store, other)

        await store.cancel(only(three.task_id, one.task_id, foreign.task_id), limit=MANY)

        assert await _to_stop(store, worker) == [one.task_id, three.task_id]
        assert await _to_stop(store, other) == [foreign.task_id]
        assert await state(store, two.task_id) is State.RUNNING

    async def test_nobody_is_asked_to_stop_what_has_ended(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)

        await save(store, stop(found))

        assert await _to_stop(store, worker) == []
        assert await state(store, found.task_id) is State.CANCELLED

    async def test_an_unknown_worker_has_nothing_to_stop(self, store: Store) -> None:
        assert await _to_stop(store, WorkerId("nobody")) == []

    async def test_a_stopped_attempt_tells_so_in_the_history_without_a_second_event(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)
        await save(store, stop(found))

        assert [a.ended for a in await attempts(store, found.task_id)] == ["cancelled"]
        assert await kinds(store, found.task_id) == ["submitted", "cancel_requested"]

    async def test_a_task_already_asked_is_not_asked_again(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)

        assert list(await store.cancel(only(found.task_id), limit=1)) == []
        assert await kinds(store, found.task_id) == ["submitted", "cancel_requested"]

    @pytest.mark.parametrize(
        "settle", [success, stop, lambda c: failure(c, retriable=False)], ids=["ok", "stop", "bad"]
    )
    async def test_ended_tasks_are_left_alone(
        self, store: Store, worker: WorkerId, settle: Settle
    ) -> None:
        task = await ended(store, worker, settle)
        before = await get(store, task)

        assert list(await store.cancel(only(task), limit=1)) == []
        assert await get(store, task) == before

    async def test_cancelling_by_filter_takes_only_what_matches(
        self, store: Store, worker: WorkerId
    ) -> None:
        mail, film = await submit(store, queue="mail"), await submit(store, queue="film")

        await store.cancel(TaskFilter(queue="mail"), limit=MANY)

        assert await state(store, mail) is State.CANCELLED
        assert await claim_ids(store, worker) == [film]

    async def test_the_limit_counts_cancelled_tasks_oldest_first(
        self, store: Store, worker: WorkerId
    ) -> None:
        await ended(store, worker, success)
        tasks = [await submit(store) for _ in range(3)]

        cancelled = await store.cancel(EVERYTHING, limit=2)

        assert [t.id for t in cancelled] == tasks[:2]
        assert [t.id for t in await store.cancel(EVERYTHING, limit=2)] == tasks[2:]
        assert list(await store.cancel(EVERYTHING, limit=2)) == []

    async def test_a_limit_of_zero_cancels_nothing(self, store: Store) -> None:
        task = await submit(store)

        assert list(await store.cancel(EVERYTHING, limit=0)) == []
        assert await state(store, task) is State.QUEUED

    async def test_a_cancel_racing_with_a_claim_ends_the_task_or_asks_its_worker(
        self, store: Store, worker: WorkerId
    ) -> None:
        tasks = [await submit(store) for _ in range(40)]

        async def act(index: int) -> int:
            if index % 2:
                return len(await store.cancel(only(tasks[index // 2]), limit=1))
            return len(await claim(store, worker, limit=2))

        answers = await at_once(80, act)

        assert sum(answers[1::2]) == 40
        for task in tasks:
            found = await get(store, task)
            assert found.cancel_requested == (found.state is State.RUNNING)
            assert found.state in {State.RUNNING, State.CANCELLED}
            assert (found.state is State.RUNNING) == bool(await attempts(store, task))
