"""Unlocking: a key passes on when its holder leaves, and each holder gets a larger fence."""

from __future__ import annotations

import pytest

from holdfast.core.task import Priority, State, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    failure,
    loss,
    new_tasks,
    release,
    stop,
    success,
    timeout,
)
from holdfast.testing.suites.base import (
    EVERYTHING,
    MANY,
    Settle,
    StoreSuite,
    add,
    claim,
    claim_ids,
    claim_one,
    enlist,
    get,
    only,
    save,
    started,
    state,
    submit,
)

KEY = "doc:1"

whatever_lets_go = pytest.mark.parametrize(
    "settle",
    [
        success,
        stop,
        failure,
        timeout,
        lambda c: failure(c, retriable=False),
        lambda c: release(c, delay=60.0),
        lambda c: loss(c, crash_limit=1),
    ],
    ids=["success", "stop", "failure", "timeout", "fatal", "snooze", "poison"],
)
"""Every end of an attempt after which its task is not ready again, and so holds no key."""


class UnlockSuite(StoreSuite):
    """The key passes on in the step that frees it, whatever freed it, and to nobody else."""

    @whatever_lets_go
    async def test_the_key_passes_on_in_the_step_that_settles_its_holder(
        self, store: Store, worker: WorkerId, settle: Settle
    ) -> None:
        first = await started(store, worker, lock=KEY)
        second = await submit(store, lock=KEY)

        await save(store, settle(first))

        assert await state(store, second) is State.QUEUED
        assert await claim_ids(store, worker) == [second]

    @pytest.mark.parametrize("settle", [release, loss, lambda c: failure(c, backoff=0.0)])
    async def test_a_task_handed_back_keeps_its_key_by_its_rank(
        self, store: Store, clock: FakeClock, worker: WorkerId, settle: Settle
    ) -> None:
        first = await started(store, worker, lock=KEY)
        clock.advance(1)
        second = await submit(store, lock=KEY)

        await save(store, settle(first))

        assert await state(store, first.task_id) is State.QUEUED
        assert await state(store, second) is State.BLOCKED

    async def test_a_task_handed_back_gives_way_to_a_smaller_rank(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await started(store, worker, lock=KEY)
        urgent = await submit(store, lock=KEY, priority=Priority.HIGH)

        await save(store, release(first))

        assert await state(store, first.task_id) is State.BLOCKED
        assert await claim_ids(store, worker) == [urgent]

    async def test_cancelling_a_ready_holder_passes_the_key_on(
        self, store: Store, worker: WorkerId
    ) -> None:
        first, second = await submit(store, lock=KEY), await submit(store, lock=KEY)

        await store.cancel(only(first), limit=1)

        assert await claim_ids(store, worker) == [second]

    async def test_cancelling_every_task_of_a_key_at_once_leaves_the_key_free(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(5, lock=KEY))

        cancelled = await store.cancel(EVERYTHING, limit=MANY)

        assert [t.state for t in cancelled] == [State.CANCELLED] * 5
        fresh = await submit(store, lock=KEY)
        assert await claim_ids(store, worker) == [fresh]

    async def test_cancelling_a_blocked_task_leaves_the_line_to_the_rest(
        self, store: Store, worker: WorkerId
    ) -> None:
        first, second, third = [await submit(store, lock=KEY) for _ in range(3)]
        await store.cancel(only(second), limit=1)

        await save(store, success(await claim_one(store, worker)))

        assert await claim_ids(store, worker) == [third]
        assert await state(store, first) is State.COMPLETED

    async def test_asking_a_running_holder_to_stop_does_not_free_the_key(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder = await started(store, worker, lock=KEY)
        await submit(store, lock=KEY)

        await store.cancel(only(holder.task_id), limit=1)

        assert await claim(store, worker) == []

    async def test_an_expired_holder_passes_the_key_on(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        first = await submit(store, lock=KEY, expires_in=5.0)
        second = await submit(store, lock=KEY)
        clock.advance(5)

        assert await claim_ids(store, worker) == [second]
        assert await state(store, first) is State.CANCELLED

    async def test_an_expired_blocked_task_does_not_get_the_key(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await submit(store, lock=KEY, expires_in=5.0)
        await submit(store, lock=KEY, expires_in=5.0)
        third = await submit(store, lock=KEY)
        clock.advance(5)

        assert await claim_ids(store, worker) == [third]

    async def test_a_dead_worker_keeps_its_keys_until_it_is_rescued(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder = await started(store, worker, lock=KEY)
        second = await submit(store, lock=KEY, priority=Priority.HIGH)
        other = await enlist(store)
        await store.bury(worker, beats=None)

        assert await claim(store, other) == []
        await save(store, loss(holder))
        assert await claim_ids(store, other) == [second]

    async def test_a_refused_settlement_does_not_free_the_key_of_the_new_holder(
        self, store: Store, worker: WorkerId
    ) -> None:
        stale = await started(store, worker, lock=KEY)
        await save(store, loss(stale))
        other = await enlist(store)
        await claim_one(store, other)
        waiting = await submit(store, lock=KEY)

        await store.save([success(stale)])

        assert await state(store, waiting) is State.BLOCKED
        assert await claim(store, other) == []

    async def test_a_repeated_settlement_does_not_free_the_key_of_the_next_holder(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await started(store, worker, lock=KEY)
        await submit(store, lock=KEY)
        third = await submit(store, lock=KEY)
        await save(store, success(first))
        await claim_one(store, worker)

        await save(store, success(first))

        assert await claim(store, worker) == []
        assert await state(store, third) is State.BLOCKED

    async def test_every_claim_of_a_locked_task_gets_a_larger_fence(
        self, store: Store, worker: WorkerId
    ) -> None:
        await submit(store, lock=KEY)
        await submit(store, lock=KEY)
        await submit(store, lock="doc:2")
        fences = []

        for _ in range(6):
            for found in await claim(store, worker, limit=1):
                assert found.fence is not None
                assert (await get(store, found.task_id)).fence == found.fence
                fences.append(found.fence)
                await save(store, release(found) if len(fences) < 4 else success(found))

        assert len(fences) == 6
        assert fences == sorted(set(fences))

    async def test_fences_grow_though_the_key_was_forgotten_meanwhile(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await started(store, worker, lock=KEY)
        await save(store, success(first))
        await store.discard(EVERYTHING, limit=MANY)

        second = await started(store, worker, lock=KEY)

        assert first.fence is not None
        assert second.fence is not None
        assert second.fence > first.fence

    async def test_a_claim_without_a_lock_has_no_fence(
        self, store: Store, worker: WorkerId
    ) -> None:
        assert (await started(store, worker)).fence is None
