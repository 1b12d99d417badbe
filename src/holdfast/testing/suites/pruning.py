"""Pruning: history is kept for a stated time, then dropped in bounded slices."""

from __future__ import annotations

from holdfast.core.task import State, SubmitOutcome, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import WINDOW, failure, new_task, new_tasks, success
from holdfast.testing.suites.base import (
    MANY,
    StoreSuite,
    add,
    all_ids,
    claim,
    ended,
    enlist,
    leave,
    only,
    save,
    started,
    submit,
)
from holdfast.testing.suites.races import at_once

DAY = 86_400.0


async def _prune(
    store: Store, *, retention: float = DAY, dead: float = 30 * DAY, limit: int = MANY
) -> int:
    return await store.prune(retention=retention, dead_letter_retention=dead, limit=limit)


class PruneSuite(StoreSuite):
    """`prune`: by age since the end, dead letters by their own."""

    async def test_a_task_that_ended_longer_ago_than_the_retention_is_forgotten(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, success)
        clock.advance(DAY + 0.000_001)

        assert await _prune(store) == 1

        assert await store.get(task) is None
        assert await store.history(task) is None

    async def test_a_task_is_kept_until_the_retention_is_over(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, success)
        clock.advance(DAY)

        assert await _prune(store) == 0
        assert await store.get(task) is not None

    async def test_age_counts_from_the_end_of_a_task(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        clock.advance(10 * DAY)
        await save(store, success(found))

        assert await _prune(store) == 0

    async def test_unfinished_tasks_are_never_pruned(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, lambda c: failure(c, backoff=1e9))
        await started(store, worker, lock="doc:1")
        await submit(store, lock="doc:1")
        await submit(store)
        await submit(store, delay=1e9)
        clock.advance(1000 * DAY)

        assert await _prune(store) == 0
        assert len(await all_ids(store)) == 5

    async def test_dead_letters_have_their_own_time(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        dead = await ended(store, worker, failure, max_retries=0)
        clock.advance(30 * DAY)
        assert await _prune(store) == 0

        clock.advance(1)

        assert await _prune(store) == 1
        assert await store.get(dead) is None

    async def test_failed_and_cancelled_tasks_go_with_the_ordinary_ones(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, lambda c: failure(c, retriable=False))
        task = await submit(store)
        await store.cancel(only(task), limit=1)
        clock.advance(2 * DAY)

        assert await _prune(store) == 2

    async def test_a_slice_is_bounded_and_less_than_the_limit_means_done(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(25))
        await save(store, *map(success, await claim(store, worker)))
        clock.advance(2 * DAY)

        assert [await _prune(store, limit=10) for _ in range(4)] == [10, 10, 5, 0]
        assert await all_ids(store) == []

    async def test_the_limit_holds_over_all_kinds_of_ended_tasks_together(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        for settle in (success, failure) * 4:
            await ended(store, worker, settle, max_retries=0)
        clock.advance(60 * DAY)

        assert [await _prune(store, limit=3) for _ in range(4)] == [3, 3, 2, 0]

    async def test_a_limit_of_zero_prunes_nothing(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, success)
        clock.advance(2 * DAY)

        assert await _prune(store, limit=0) == 0
        assert len(await all_ids(store)) == 1

    async def test_a_pruned_task_takes_its_idempotency_key_along(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, success, idempotency_key="k", fingerprint="one")
        clock.advance(100)
        await _prune(store, retention=50)

        (answer,) = await add(store, new_task(idempotency_key="k", fingerprint="two"))

        assert answer.created

    async def test_pruning_keeps_the_idempotency_keys_that_still_count(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, success, idempotency_key="k")
        clock.advance(WINDOW - 1)
        await _prune(store, retention=30 * DAY)

        (answer,) = await add(store, new_task(idempotency_key="k"))

        assert answer == (task, SubmitOutcome.IDEMPOTENCY_KEY, State.COMPLETED)

    async def test_pruning_a_task_leaves_the_unique_key_with_its_successor(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, success, unique_key="u")
        clock.advance(2 * DAY)
        successor = await submit(store, unique_key="u")
        await _prune(store)

        (answer,) = await add(store, new_task(unique_key="u"))

        assert answer.task_id == successor

    async def test_long_gone_workers_go_along_and_the_living_stay(
        self, store: Store, clock: FakeClock
    ) -> None:
        dead, stopped, silent = [await enlist(store) for _ in range(3)]
        await store.bury(dead, beats=None)
        await leave(store, stopped)
        clock.advance(2 * DAY)
        fresh = await enlist(store)
        await leave(store, fresh)

        await _prune(store)

        assert {info.id for info in await store.workers()} == {silent, fresh}

    async def test_pruners_racing_each_other_count_every_task_once(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(60))
        await save(store, *map(success, await claim(store, worker)))
        clock.advance(2 * DAY)

        counts = await at_once(8, lambda _: _prune(store, limit=20))

        assert sum(counts) == 60
