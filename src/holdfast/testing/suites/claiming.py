"""Claiming: a task is handed to one worker, with all it needs, and the start is on record."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.core.attempt import Claim
from holdfast.core.task import Cause, Priority, State, TaskId, WorkerId
from holdfast.errors import WorkerGone
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import new_task, new_tasks, release, success
from holdfast.testing.suites.base import (
    StoreSuite,
    add,
    attempts,
    claim,
    claim_ids,
    claim_one,
    enlist,
    get,
    leave,
    save,
    started,
    state,
    submit,
)
from holdfast.testing.suites.races import at_once, in_threads


class ClaimSuite(StoreSuite):
    """Two callers never get the same task, and what they get is started by getting it."""

    async def test_a_claim_brings_what_a_worker_needs(self, store: Store, worker: WorkerId) -> None:
        new = new_task(
            name="mail.send",
            payload=b'{"to":"a@b"}',
            queue="mail",
            priority=Priority.HIGH,
            max_retries=7,
            timeout=2.5,
            retry="fixed(1s)",
            trace="00-1-2-01",
            owner="anna",
        )
        await add(store, new)

        assert await claim_one(store, worker) == Claim(
            task_id=new.id,
            attempt=1,
            worker_id=worker,
            name="mail.send",
            queue="mail",
            priority=Priority.HIGH,
            payload=b'{"to":"a@b"}',
            charged=0,
            max_retries=7,
            crash_count=0,
            timeout=2.5,
            retry="fixed(1s)",
            lock=None,
            fence=None,
            cause=Cause.SUBMITTED,
            trace="00-1-2-01",
            owner="anna",
            cancel_requested=False,
        )

    async def test_a_claim_tells_the_ranks_of_what_it_brings(
        self, store: Store, worker: WorkerId
    ) -> None:
        low = await submit(store, priority=Priority.LOW)
        high = await submit(store, priority=Priority.HIGH)

        found = await store.claim(worker, queues=None, capabilities=frozenset(), limit=5)

        assert [claim.task_id for claim in found.claims] == [high, low]
        ranks = [(await get(store, claim.task_id)).rank for claim in found.claims]
        assert list(found.ranks) == ranks == sorted(ranks)

    async def test_a_claimed_task_is_running_on_its_worker(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store)
        clock.advance(3)

        await claim_one(store, worker)

        found = await get(store, task)
        assert (found.state, found.worker_id, found.started_at, found.attempt) == (
            State.RUNNING,
            worker,
            clock.now,
            1,
        )
        assert found.finished_at is None

    async def test_a_claim_is_an_attempt_in_the_history_at_once(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        (attempt,) = await attempts(store, found.task_id)
        assert (attempt.number, attempt.cause, attempt.worker_id) == (1, Cause.SUBMITTED, worker)
        assert (attempt.started_at, attempt.ended_at, attempt.ended) == (clock.now, None, None)

    async def test_the_attempt_number_grows_with_every_start(
        self, store: Store, worker: WorkerId
    ) -> None:
        await submit(store)
        numbers = []

        for _ in range(4):
            found = await claim_one(store, worker)
            numbers.append(found.attempt)
            await save(store, release(found))

        assert numbers == [1, 2, 3, 4]

    async def test_a_claim_takes_no_more_than_its_limit(
        self, store: Store, worker: WorkerId
    ) -> None:
        batch = new_tasks(5)
        await add(store, *batch)

        assert await claim_ids(store, worker, limit=3) == [t.id for t in batch[:3]]
        assert await claim_ids(store, worker, limit=3) == [t.id for t in batch[3:]]

    async def test_a_claim_with_limit_zero_starts_nothing(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await submit(store)

        assert await claim(store, worker, limit=0) == []
        assert await state(store, task) is State.QUEUED

    async def test_an_empty_store_gives_an_empty_claim(
        self, store: Store, worker: WorkerId
    ) -> None:
        claimed = await store.claim(worker, queues=None, capabilities=frozenset(), limit=10)

        assert (list(claimed.claims), claimed.next_due) == ([], None)

    async def test_a_running_task_is_not_claimed_again_because_time_passed(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await started(store, worker)

        clock.advance(30 * 86_400)

        assert await claim(store, await enlist(store)) == []

    async def test_an_ended_task_is_not_claimed(self, store: Store, worker: WorkerId) -> None:
        await save(store, success(await started(store, worker)))

        assert await claim(store, worker) == []

    async def test_a_claim_takes_only_from_its_queues(self, store: Store, worker: WorkerId) -> None:
        mail, film = await submit(store, queue="mail"), await submit(store, queue="film")
        await submit(store, queue="other")

        assert await claim_ids(store, worker, queues=["film", "mail"]) == [mail, film]

    async def test_none_means_every_queue(self, store: Store, worker: WorkerId) -> None:
        tasks = [await submit(store, queue=queue) for queue in ("a", "b", "c")]

        assert await claim_ids(store, worker, queues=None) == tasks

    async def test_no_queues_mean_no_tasks(self, store: Store, worker: WorkerId) -> None:
        await submit(store)

        assert await claim(store, worker, queues=[]) == []

    async def test_a_queue_that_does_not_exist_gives_nothing(
        self, store: Store, worker: WorkerId
    ) -> None:
        await submit(store)

        assert await claim(store, worker, queues=["nope", "o'; --", "défaut"]) == []

    async def test_queue_names_are_compared_exactly(self, store: Store, worker: WorkerId) -> None:
        await submit(store, queue="Mail")

        assert await claim(store, worker, queues=["mail", "Mai", "Mail ", "%"]) == []

    async def test_a_task_behind_many_of_another_queue_is_found(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(500, queue="busy"))
        task = await submit(store, queue="quiet")

        assert await claim_ids(store, worker, queues=["quiet"], limit=1) == [task]

    async def test_a_worker_that_never_registered_is_told_it_is_gone(self, store: Store) -> None:
        await submit(store)

        with pytest.raises(WorkerGone) as gone:
            await claim(store, WorkerId("nobody"))

        assert gone.value.worker_id == "nobody"

    async def test_a_buried_worker_is_told_it_is_gone_and_starts_nothing(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await submit(store)
        await store.bury(worker, beats=None)

        with pytest.raises(WorkerGone):
            await claim(store, worker)

        assert await state(store, task) is State.QUEUED

    async def test_a_stopped_worker_is_told_it_is_gone(
        self, store: Store, worker: WorkerId
    ) -> None:
        await leave(store, worker)

        with pytest.raises(WorkerGone):
            await claim(store, worker)

    async def test_many_claimers_of_one_loop_never_share_a_task(self, store: Store) -> None:
        batch = new_tasks(self.some(200))
        await add(store, *batch)
        workers = [await enlist(store) for _ in range(8)]

        async def drain(index: int) -> list[TaskId]:
            got: list[TaskId] = []
            while found := await claim_ids(store, workers[index], limit=7):
                got += found
            return got

        shares = await at_once(8, drain)

        assert sorted(task for share in shares for task in share) == [t.id for t in batch]

    async def test_many_claimers_in_threads_never_share_a_task(self, store: Store) -> None:
        batch = new_tasks(self.some(300))
        await add(store, *batch)

        async def drain(_: int) -> list[TaskId]:
            worker = await enlist(store)
            got: list[TaskId] = []
            while found := await claim_ids(store, worker, limit=5):
                got += found
            return got

        shares = await in_threads(6, drain)

        assert sorted(task for share in shares for task in share) == [t.id for t in batch]

    async def test_tasks_submitted_while_claimers_run_are_each_started_once(
        self, store: Store
    ) -> None:
        batch = new_tasks(self.some(120))
        workers = [await enlist(store) for _ in range(4)]
        starts: list[TaskId] = []

        async def work(index: int) -> None:
            if index < 4:
                while len(starts) < len(batch):
                    await asyncio.sleep(0)  # a store in memory never suspends by itself
                    found = await claim(store, workers[index], limit=3)
                    starts.extend(c.task_id for c in found)
                    await save(store, *map(success, found))
            else:
                for new in batch[index - 4 :: 4]:
                    await add(store, new)
                    await asyncio.sleep(0)

        await at_once(8, work)

        assert sorted(starts) == [t.id for t in batch]
