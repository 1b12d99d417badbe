"""Callbacks: whoever wanted to be told of a task's end is, once it ended and not before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.callback import Callback
from holdfast.core.task import State, TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    HEAD_STARTS,
    failure,
    loss,
    new_task,
    release,
    stop,
    success,
    timeout,
)
from holdfast.testing.suites.base import (
    MANY,
    OpenAnother,
    StoreSuite,
    add,
    claim,
    claim_one,
    ended,
    events,
    get,
    kinds,
    only,
    save,
    started,
    submit,
)
from holdfast.testing.suites.races import at_once

URL = "https://example.com/hook?a=1&b=ü"
LEASE = 30.0


async def _due(store: Store, limit: int = MANY) -> list[Callback]:
    return list(await store.due_callbacks(limit=limit, lease=LEASE))


async def _due_ids(store: Store) -> list[TaskId]:
    return [callback.task_id for callback in await _due(store)]


async def _only_due(store: Store) -> Callback:
    (found,) = await _due(store)
    return found


async def _requeue(store: Store, task: TaskId) -> None:
    (again,) = await store.requeue(only(task), limit=1, head_starts=HEAD_STARTS)
    assert again.state is State.QUEUED


class CallbackSuite(StoreSuite):
    """`CallbackStore`, and every way in which a task ends."""

    async def test_a_callback_comes_back_with_its_task(self, store: Store) -> None:
        called, plain = await submit(store, callback=URL), await submit(store)

        assert (await get(store, called)).callback == URL
        assert (await get(store, plain)).callback is None

    async def test_a_repeated_submit_does_not_change_the_callback(self, store: Store) -> None:
        called, plain = new_task(callback=URL), new_task()
        await add(store, called, plain)

        await add(store, called._replace(callback="x"), plain._replace(callback="y"), new_task())

        assert (await get(store, called.id)).callback == URL
        assert (await get(store, plain.id)).callback is None

    @pytest.mark.parametrize(
        "end",
        [
            success,
            lambda c: success(c, bytes(range(256))),
            stop,
            lambda c: failure(c, retriable=False),
            lambda c: loss(c, crash_limit=1),
        ],
        ids=["completed", "binary", "cancelled", "failed", "poison"],
    )
    async def test_an_end_is_told(
        self,
        store: Store,
        clock: FakeClock,
        worker: WorkerId,
        end: Callable[[Claim], Settlement],
    ) -> None:
        task = await ended(store, worker, end, callback=URL)

        assert await _due(store) == [Callback(task, URL, 1, clock.now)]

    @pytest.mark.parametrize("given", [{"lock": "k"}, {"unique_key": "u"}, {"expires_in": 60.0}])
    async def test_an_end_of_a_task_with_other_things_is_told(
        self, store: Store, worker: WorkerId, given: dict[str, Any]
    ) -> None:
        task = await ended(store, worker, success, callback=URL, **given)

        assert await _due_ids(store) == [task]

    @pytest.mark.parametrize("end", [failure, timeout], ids=["error", "timeout"])
    async def test_only_the_last_attempt_is_told(
        self,
        store: Store,
        clock: FakeClock,
        worker: WorkerId,
        end: Callable[[Claim], Settlement],
    ) -> None:
        task = await ended(store, worker, end, callback=URL, max_retries=1)
        assert await _due(store) == []

        clock.advance(60)
        await save(store, end(await claim_one(store, worker)))

        assert await _due_ids(store) == [task]

    async def test_a_task_that_is_handed_back_has_not_ended(
        self, store: Store, worker: WorkerId
    ) -> None:
        await ended(store, worker, release, callback=URL)
        assert await _due(store) == []

        await save(store, success(await claim_one(store, worker)))

        assert len(await _due(store)) == 1

    async def test_a_cancelled_task_is_told_wherever_it_was(
        self, store: Store, worker: WorkerId
    ) -> None:
        running = await started(store, worker, callback=URL)
        tasks = [
            await submit(store, callback=URL),
            await submit(store, callback=URL, delay=60.0),
            await submit(store, callback=URL, lock="k"),
            await submit(store, callback=URL, lock="k"),
        ]

        await store.cancel(only(*tasks, running.task_id), limit=MANY)

        assert sorted(await _due_ids(store)) == tasks
        await save(store, failure(running))
        assert await _due_ids(store) == [running.task_id]

    async def test_an_expired_task_is_told(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, callback=URL, expires_in=1.0)
        clock.advance(2)

        assert await claim(store, worker) == []

        assert await _due_ids(store) == [task]

    async def test_of_a_batch_only_those_that_asked_are_told(
        self, store: Store, worker: WorkerId
    ) -> None:
        batch = [new_task(callback=URL if n % 3 == 0 else None) for n in range(60)]
        await add(store, *batch)

        await save(store, *map(success, await claim(store, worker)))

        assert sorted(await _due_ids(store)) == [new.id for new in batch[::3]]

    async def test_tasks_that_are_alike_but_for_nothing_keep_their_callback(
        self, store: Store, worker: WorkerId
    ) -> None:
        batch = [new_task(callback=URL) for _ in range(5)]
        await add(store, *batch)

        await save(store, *map(success, await claim(store, worker)))

        assert sorted(await _due_ids(store)) == [new.id for new in batch]

    async def test_a_settlement_that_comes_twice_is_told_once(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker, callback=URL)
        await save(store, success(found))
        first = await _only_due(store)
        await store.callback_done(first, retry_in=None, error=None)

        await save(store, success(found))

        assert await _due(store) == []

    async def test_a_late_result_tells_nothing(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker, callback=URL)
        await save(store, release(found))

        assert len(await store.save([success(found)])) == 1

        assert await _due(store) == []

    async def test_what_was_handed_out_is_nobody_elses_until_the_lease_is_over(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, success, callback=URL)
        first = await _only_due(store)

        clock.advance(LEASE - 0.000_001)
        assert await _due(store) == []
        clock.advance(0.000_001)

        assert await _only_due(store) == first._replace(tries=2)

    async def test_a_delivered_callback_is_over_and_in_the_history(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, success, callback=URL)
        clock.advance(2)

        assert await store.callback_done(await _only_due(store), retry_in=None, error=None)

        last = (await events(store, task))[-1]
        assert (last.kind, last.at, last.detail) == ("callback_delivered", clock.now, None)
        clock.advance(10 * LEASE)
        assert await _due(store) == []

    async def test_a_callback_that_was_given_up_says_why(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, success, callback=URL)

        await store.callback_done(await _only_due(store), retry_in=None, error="410 Gone")

        last = (await events(store, task))[-1]
        assert (last.kind, last.detail) == ("callback_failed", "410 Gone")

    async def test_a_callback_that_failed_is_due_again_when_it_was_said(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, success, callback=URL)
        first = await _only_due(store)

        assert await store.callback_done(first, retry_in=5.5, error="503")

        assert await kinds(store, task) == ["submitted"]
        clock.advance(5.499_999)
        assert await _due(store) == []
        clock.advance(0.000_001)
        assert await _only_due(store) == first._replace(tries=2)

    async def test_a_repeated_word_about_a_delivery_changes_nothing(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, success, callback=URL)
        found = await _only_due(store)
        await store.callback_done(found, retry_in=None, error=None)

        assert await store.callback_done(found, retry_in=None, error=None) is False

        assert (await kinds(store, task)).count("callback_delivered") == 1

    async def test_who_lost_the_lease_has_nothing_to_say(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, success, callback=URL)
        slow = await _only_due(store)
        clock.advance(LEASE)
        quick = await _only_due(store)

        assert await store.callback_done(slow, retry_in=0.0, error="late") is False
        assert await store.callback_done(slow, retry_in=None, error=None) is False
        assert await _due(store) == []
        assert await store.callback_done(quick, retry_in=None, error=None) is True
        assert (await kinds(store, task)).count("callback_delivered") == 1

    async def test_the_longest_due_come_first_and_no_more_than_asked_for(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        tasks = []
        for _ in range(4):
            tasks.append(await ended(store, worker, success, callback=URL))
            clock.advance(1)

        assert await _due(store, 0) == []
        assert [found.task_id for found in await _due(store, 3)] == tasks[:3]
        assert await _due_ids(store) == tasks[3:]

    async def test_a_requeued_task_takes_back_what_was_not_told(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, stop, callback=URL)

        await _requeue(store, task)

        assert await _due(store) == []

    async def test_a_requeued_task_tells_of_its_next_end(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, stop, callback=URL)
        await store.callback_done(await _only_due(store), retry_in=None, error=None)
        clock.advance(5)

        await _requeue(store, task)
        await save(store, success(await claim_one(store, worker)))

        assert await _due(store) == [Callback(task, URL, 1, clock.now)]
        assert (await get(store, task)).callback == URL

    async def test_a_word_about_an_earlier_end_says_nothing_of_the_next(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, stop, callback=URL)
        earlier = await _only_due(store)
        clock.advance(1)
        await _requeue(store, task)
        await save(store, success(await claim_one(store, worker)))
        later = await _only_due(store)

        assert await store.callback_done(earlier, retry_in=None, error=None) is False
        assert later == earlier._replace(ended_at=earlier.ended_at + timedelta(seconds=1))
        assert await store.callback_done(later, retry_in=None, error=None) is True

    @pytest.mark.parametrize(
        "forget",
        [
            lambda store, task: store.discard(only(task), limit=1),
            lambda store, _: store.prune(retention=1, dead_letter_retention=1, limit=MANY),
        ],
        ids=["discarded", "pruned"],
    )
    async def test_a_forgotten_task_tells_nothing(
        self,
        store: Store,
        clock: FakeClock,
        worker: WorkerId,
        forget: Callable[[Store, TaskId], Awaitable[int]],
    ) -> None:
        task = await ended(store, worker, success, callback=URL)
        held = await _only_due(store)
        clock.advance(60)

        assert await forget(store, task) == 1

        assert await _due(store) == []
        assert await store.callback_done(held, retry_in=None, error=None) is False

    async def test_of_many_that_deliver_none_gets_what_another_has(
        self, store: Store, worker: WorkerId
    ) -> None:
        batch = [new_task(callback=URL) for _ in range(60)]
        await add(store, *batch)
        await save(store, *map(success, await claim(store, worker)))

        async def take(_: int) -> list[TaskId]:
            taken: list[TaskId] = []
            while some := await _due(store, 3):
                taken += [found.task_id for found in some]
            return taken

        shares = await at_once(6, take)

        assert sorted(task for share in shares for task in share) == [new.id for new in batch]

    async def test_another_handle_delivers_what_this_one_owes(
        self, store: Store, worker: WorkerId, open_another: OpenAnother
    ) -> None:
        task = await ended(store, worker, success, callback=URL)
        other = await open_another()

        (found,) = await _due(other)
        assert await _due(store) == []
        await other.callback_done(found, retry_in=None, error=None)

        assert (await kinds(store, task))[-1] == "callback_delivered"
