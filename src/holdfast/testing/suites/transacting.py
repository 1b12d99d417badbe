"""Transactions: a handler's writes and its completion are one, and a zombie's are none.

The handler's write that these tests watch is a task added through the transaction's own connection:
every store can do that, whatever its language.
"""

from __future__ import annotations

import asyncio

import pytest

from holdfast.core.attempt import Report
from holdfast.core.task import Cost, NewTask, Progress, State, WorkerId
from holdfast.errors import IdempotencyConflict, InvalidOption, LeaseLost
from holdfast.ports.store import Store, Transaction
from holdfast.testing.factories import WINDOW, loss, new_task, release, success
from holdfast.testing.suites.base import (
    OpenAnother,
    StoreSuite,
    add,
    all_ids,
    attempts,
    claim_one,
    enlist,
    events,
    get,
    kinds,
    save,
    started,
    state,
    submit,
)
from holdfast.testing.suites.races import at_once


class _Stopped(Exception):
    """What a handler raises."""


async def write(store: Store, inside: Transaction, *tasks: NewTask) -> None:
    """What a handler does inside: its writes are tasks."""
    await store.add_within_async(inside.connection, tasks, idempotency_window=WINDOW)


class TransactionSuite(StoreSuite):
    """`transaction`, `add_within_async` through it."""

    @pytest.fixture
    def transacting(self, store: Store) -> Store:
        """The store, if it can."""
        if "transactions" not in store.abilities:
            pytest.skip("this store has no transactions (no ability `transactions`)")
        return store

    async def test_a_transaction_commits_the_handlers_writes_and_the_completion_together(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)
        follow_up = new_task(name="follow-up")

        async with transacting.transaction(found) as inside:
            await write(transacting, inside, follow_up)
            await inside.complete(success(found, b'{"n":1}'))

        done = await get(transacting, found.task_id)
        assert (done.state, done.result) == (State.COMPLETED, b'{"n":1}')
        assert await state(transacting, follow_up.id) is State.QUEUED
        assert (await transacting.stats()).states[State.COMPLETED] == 1
        (attempt,) = await attempts(transacting, found.task_id)
        assert attempt.ended == "completed"

    async def test_what_is_written_in_a_transaction_is_not_seen_before_it_commits(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)

        async with transacting.transaction(found) as inside:
            await write(transacting, inside, new_task())

            assert await all_ids(transacting) == [found.task_id]
            assert await state(transacting, found.task_id) is State.RUNNING
            await inside.complete(success(found))

    async def test_an_exception_in_a_transaction_leaves_nothing_of_it(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)

        async def handler() -> None:
            async with transacting.transaction(found) as inside:
                await write(transacting, inside, new_task())
                raise _Stopped

        with pytest.raises(_Stopped):
            await handler()

        assert await all_ids(transacting) == [found.task_id]
        assert await state(transacting, found.task_id) is State.RUNNING
        await save(transacting, success(found))

    async def test_a_transaction_left_without_completing_is_rolled_back(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)

        async with transacting.transaction(found) as inside:
            await write(transacting, inside, new_task())

        assert await all_ids(transacting) == [found.task_id]
        await save(transacting, success(found))

    async def test_a_cancelled_transaction_is_rolled_back(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)
        is_inside = asyncio.Event()

        async def handler() -> None:
            async with transacting.transaction(found) as inside:
                await write(transacting, inside, new_task())
                is_inside.set()
                await asyncio.sleep(60)

        running = asyncio.create_task(handler())
        await is_inside.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        assert await all_ids(transacting) == [found.task_id]
        await save(transacting, success(found))

    async def test_no_transaction_begins_for_an_attempt_that_was_rescued(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        zombie = await started(transacting, worker)
        await transacting.bury(worker, beats=None)
        await save(transacting, loss(zombie))
        heir = await claim_one(transacting, await enlist(transacting, "heir"))

        with pytest.raises(LeaseLost):
            async with transacting.transaction(zombie):
                pytest.fail("a zombie must not get a connection")

        assert await state(transacting, zombie.task_id) is State.RUNNING
        await save(transacting, success(heir))

    async def test_a_transaction_that_begins_again_after_a_refusal_is_refused_again(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)
        await save(transacting, success(found))

        for _ in range(2):
            with pytest.raises(LeaseLost):
                async with transacting.transaction(found):
                    pytest.fail("the task has ended")

        assert await kinds(transacting, found.task_id) == ["submitted"]

    async def test_a_completion_by_transaction_repeated_by_save_is_silently_accepted(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)
        async with transacting.transaction(found) as inside:
            await inside.complete(success(found, b"1"))

        await save(transacting, success(found, b"1"))

        assert (await transacting.stats()).refused == 0
        assert len(await attempts(transacting, found.task_id)) == 1

    async def test_another_outcome_after_a_completion_by_transaction_is_refused(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)
        async with transacting.transaction(found) as inside:
            await inside.complete(success(found))

        (refusal,) = await transacting.save([release(found)])

        assert refusal.task_id == found.task_id
        assert await state(transacting, found.task_id) is State.COMPLETED

    async def test_a_transaction_knows_whether_it_was_committed(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        await add(transacting, new_task(), new_task())
        first = await claim_one(transacting, worker, limit=1)
        second = await claim_one(transacting, worker, limit=1)

        async with transacting.transaction(first) as inside:
            await inside.complete(success(first))
            assert await inside.committed()
        async with transacting.transaction(second) as inside:
            await write(transacting, inside, new_task())
            assert not await inside.committed()

        await save(transacting, success(second))

    async def test_a_transaction_stores_what_the_attempt_said_last(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)
        report = Report(
            found.task_id, found.attempt, worker, Progress(done=3.0, total=4.0),
            Cost(units=2.0, tokens_in=5), ("nearly there",),
        )  # fmt: skip

        async with transacting.transaction(found) as inside:
            await inside.complete(success(found), report)

        done = await get(transacting, found.task_id)
        assert done.progress == Progress(done=3.0, total=4.0)
        assert done.cost == Cost(units=2.0, tokens_in=5)
        assert [event.detail for event in await events(transacting, found.task_id)][
            -1
        ] == "nearly there"

    async def test_a_transaction_lets_go_of_the_lock_and_the_unique_key(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker, lock="doc:1", unique_key="u")
        waiting = await submit(transacting, lock="doc:1")

        async with transacting.transaction(found) as inside:
            await inside.complete(success(found))

        assert await state(transacting, waiting) is State.QUEUED
        heir = await claim_one(transacting, worker)
        assert (heir.fence or 0) > (found.fence or 0)
        await save(transacting, success(heir))
        await submit(transacting, unique_key="u")

    async def test_many_transactions_at_once_complete_each_its_own_task(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        await add(transacting, *(new_task() for _ in range(12)))
        found = [await claim_one(transacting, worker, limit=1) for _ in range(12)]

        async def handle(index: int) -> None:
            async with transacting.transaction(found[index]) as inside:
                await write(transacting, inside, new_task(name="follow-up"))
                await inside.complete(success(found[index]))

        await at_once(12, handle)

        assert (await transacting.stats()).states[State.COMPLETED] == 12
        assert len(await all_ids(transacting)) == 24

    async def test_a_submit_in_a_transaction_is_idempotent_as_everywhere(
        self, transacting: Store, worker: WorkerId
    ) -> None:
        found = await started(transacting, worker)
        first = await submit(transacting, idempotency_key="k", fingerprint="f")

        async with transacting.transaction(found) as inside:
            again = new_task(idempotency_key="k", fingerprint="f")
            (same,) = await transacting.add_within_async(
                inside.connection, [again], idempotency_window=WINDOW
            )
            with pytest.raises(IdempotencyConflict):
                await write(transacting, inside, new_task(), new_task(idempotency_key="k"))
            await inside.complete(success(found))

        assert (same.task_id, same.outcome) == (first, "idempotency_key")
        assert len(await all_ids(transacting)) == 2

    async def test_a_submit_in_a_transaction_of_something_else_is_refused(
        self, transacting: Store
    ) -> None:
        for thing in (object(), 42, "postgresql://"):
            with pytest.raises(InvalidOption, match="connection"):
                await transacting.add_within_async(thing, [new_task()], idempotency_window=WINDOW)
            with pytest.raises(InvalidOption, match="connection"):
                transacting.add_within(thing, [new_task()], idempotency_window=WINDOW)

    async def test_transactions_of_two_handles_do_not_lose_each_others_work(
        self, transacting: Store, open_another: OpenAnother
    ) -> None:
        handles = [transacting, await open_another()]
        workers = [await enlist(handle) for handle in handles]
        await add(transacting, *(new_task() for _ in range(10)))

        async def drain(index: int) -> int:
            done = 0
            while found := (
                await handles[index].claim(
                    workers[index], queues=["default"], capabilities=frozenset(), limit=1
                )
            ).claims:
                async with handles[index].transaction(found[0]) as inside:
                    await write(handles[index], inside, new_task(queue="later"))
                    await inside.complete(success(found[0]))
                done += 1
            return done

        shares = await at_once(2, drain)

        assert sum(shares) == 10
        assert (await transacting.stats()).states[State.COMPLETED] == 10
        assert len(await all_ids(transacting)) == 20
