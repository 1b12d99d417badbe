"""Submitting: what was acknowledged is there, whole, and submitted once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast.core.task import Added, Cause, Cost, Priority, State, SubmitOutcome, Task, WorkerId
from holdfast.errors import IdempotencyConflict
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import new_task, new_tasks, success, task_id
from holdfast.testing.suites.base import (
    StoreSuite,
    add,
    all_ids,
    claim_one,
    events,
    get,
    save,
    submit,
)


class SubmitSuite(StoreSuite):
    """`add`: durable, whole, in order, all or none, safe to repeat."""

    async def test_a_plain_task_is_stored_with_its_defaults(
        self, store: Store, clock: FakeClock
    ) -> None:
        new = new_task(name="mail.send", payload=b'{"to":"a@b"}', head_start=5)

        await add(store, new)

        assert await get(store, new.id) == Task(
            id=new.id,
            name="mail.send",
            queue="default",
            priority=Priority.NORMAL,
            state=State.QUEUED,
            payload=b'{"to":"a@b"}',
            created_at=clock.now,
            run_at=clock.now,
            rank=clock.now_us() - 5,
            attempt=0,
            charged=0,
            max_retries=3,
            crash_count=0,
            cause=Cause.SUBMITTED,
        )

    async def test_every_field_of_a_task_comes_back_as_it_was_given(
        self, store: Store, clock: FakeClock
    ) -> None:
        parent = task_id()
        new = new_task(
            name="règles.appliquer",
            payload=b'{"n":1}',
            queue="mail",
            priority=Priority.HIGH,
            head_start=7,
            delay=2.5,
            expires_in=60.0,
            max_retries=9,
            timeout=1.5,
            retry="exponential(1s)",
            unique_key="u",
            idempotency_key="i",
            fingerprint="f",
            lock="doc:1",
            requires=frozenset({"gpu", "fast"}),
            tags=("b", "a", "ü"),
            owner="anna",
            trace="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            parent_id=parent,
        )

        await add(store, new)

        assert await get(store, new.id) == Task(
            id=new.id,
            name="règles.appliquer",
            queue="mail",
            priority=Priority.HIGH,
            state=State.QUEUED,
            payload=b'{"n":1}',
            created_at=clock.now,
            run_at=clock.now + timedelta(seconds=2.5),
            rank=clock.now_us() + 2_500_000 - 7,
            attempt=0,
            charged=0,
            max_retries=9,
            crash_count=0,
            cause=Cause.SUBMITTED,
            timeout=1.5,
            retry="exponential(1s)",
            expires_at=clock.now + timedelta(seconds=60),
            unique_key="u",
            idempotency_key="i",
            lock="doc:1",
            requires=frozenset({"gpu", "fast"}),
            tags=("b", "a", "ü"),
            owner="anna",
            trace="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            parent_id=parent,
            cost=Cost(),
        )

    @pytest.mark.parametrize("priority", list(Priority))
    async def test_each_priority_comes_back(self, store: Store, priority: Priority) -> None:
        task = await submit(store, priority=priority)

        assert (await get(store, task)).priority is priority

    async def test_a_batch_is_answered_in_its_order(self, store: Store) -> None:
        batch = new_tasks(50)
        batch.reverse()

        answers = await add(store, *batch)

        assert answers == [Added(t.id, SubmitOutcome.CREATED, State.QUEUED) for t in batch]

    async def test_every_task_of_a_batch_is_stored(self, store: Store) -> None:
        batch = new_tasks(500)

        await add(store, *batch)

        assert sorted(await all_ids(store)) == [t.id for t in batch]

    async def test_an_empty_batch_is_answered_with_nothing(self, store: Store) -> None:
        assert await add(store) == []

    async def test_a_conflict_in_the_middle_of_a_batch_leaves_nothing_of_it(
        self, store: Store
    ) -> None:
        await submit(store, idempotency_key="order-7", fingerprint="first")
        before = await all_ids(store)
        clash = new_task(idempotency_key="order-7", fingerprint="second")

        with pytest.raises(IdempotencyConflict):
            await add(store, new_task(), clash, new_task(lock="doc:1"), new_task(unique_key="u"))

        assert await all_ids(store) == before
        await submit(store, unique_key="u")

    async def test_submitting_the_same_id_again_answers_created_and_stores_it_once(
        self, store: Store
    ) -> None:
        new = new_task(unique_key="u", idempotency_key="i", fingerprint="f", lock="doc:1")

        first = await add(store, new)
        second = await add(store, new)

        assert first == second == [Added(new.id, SubmitOutcome.CREATED, State.QUEUED)]
        assert await all_ids(store) == [new.id]
        assert len(await events(store, new.id)) == 1

    async def test_the_same_id_twice_in_one_batch_is_one_task(self, store: Store) -> None:
        new = new_task(unique_key="u", idempotency_key="i", fingerprint="f")

        answers = await add(store, new, new)

        assert answers == [Added(new.id, SubmitOutcome.CREATED, State.QUEUED)] * 2
        assert await all_ids(store) == [new.id]

    async def test_submitting_the_id_of_an_ended_task_again_changes_nothing(
        self, store: Store, worker: WorkerId
    ) -> None:
        new = new_task()
        await add(store, new)
        await save(store, success(await claim_one(store, worker)))
        before = await get(store, new.id)

        answers = await add(store, new)

        assert answers == [Added(new.id, SubmitOutcome.CREATED, State.COMPLETED)]
        assert await get(store, new.id) == before

    async def test_work_whose_run_at_is_past_is_ready_and_ranked_by_run_at(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        past = clock.now - timedelta(hours=1)

        task = await submit(store, run_at=past, head_start=3)

        stored = await get(store, task)
        assert (stored.run_at, stored.rank) == (past, clock.now_us() - 3_600_000_000 - 3)
        assert (await claim_one(store, worker)).task_id == task

    async def test_an_instant_in_another_zone_is_stored_as_utc(
        self, store: Store, clock: FakeClock
    ) -> None:
        noon_in_delhi = datetime(2027, 1, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))

        task = await submit(store, run_at=noon_in_delhi, expires_at=noon_in_delhi)

        stored = await get(store, task)
        assert stored.run_at == stored.expires_at == datetime(2027, 1, 1, 6, 30, tzinfo=UTC)
        assert stored.run_at.utcoffset() == timedelta(0)

    async def test_run_at_wins_over_delay_and_expires_at_over_expires_in(
        self, store: Store, clock: FakeClock
    ) -> None:
        soon, later = clock.now + timedelta(seconds=5), clock.now + timedelta(seconds=9)

        task = await submit(store, run_at=soon, delay=100.0, expires_at=later, expires_in=1.0)

        stored = await get(store, task)
        assert (stored.run_at, stored.expires_at) == (soon, later)

    async def test_an_instant_keeps_its_microseconds(self, store: Store) -> None:
        exact = datetime(2030, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

        task = await submit(store, run_at=exact, head_start=0)

        stored = await get(store, task)
        assert stored.run_at == exact
        assert stored.rank == 1_924_991_999_999_999

    async def test_a_duration_is_rounded_to_the_nearest_microsecond(
        self, store: Store, clock: FakeClock
    ) -> None:
        task = await submit(store, delay=0.000_001_6, head_start=0)

        assert (await get(store, task)).rank == clock.now_us() + 2

    async def test_a_new_task_has_one_event_that_says_submitted(
        self, store: Store, clock: FakeClock
    ) -> None:
        task = await submit(store)

        (event,) = await events(store, task)
        assert (event.kind, event.at) == ("submitted", clock.now)
