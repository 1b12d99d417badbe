"""Many processes on one store: the races that only they can run."""

from __future__ import annotations

import asyncio
import atexit
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from holdfast.core.lifecycle import TERMINAL, UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.task import Json, State, TaskId
from holdfast.ports.store import Store
from holdfast.testing.factories import failure, new_task, new_tasks, worker_id
from holdfast.testing.store_processes import GO, StoreProcess, StoreProcesses
from holdfast.testing.suites.base import (
    MANY,
    StoreSuite,
    add,
    all_ids,
    attempts,
    claim,
    enlist,
    get,
    save,
    state,
)
from holdfast.testing.suites.races import overlaps
from holdfast.wiring import open_store

Spawn = Callable[..., Coroutine[Any, Any, list[Json]]]
PROCESSES = 4


@cache
def _processes() -> StoreProcesses:
    """The same processes for every store that this one tests."""
    processes = StoreProcesses(PROCESSES)
    atexit.register(processes.close)
    return processes


class ManyProcessesSuite(StoreSuite):
    """Real processes, released together, against one store with the host's clock."""

    drained = 2000
    """How many tasks they share out. A class may lower it for a server that is slow."""

    @pytest.fixture
    def processes(self) -> StoreProcesses:
        return _processes()

    @pytest.fixture
    async def shared(self, process_url: str) -> AsyncIterator[Store]:
        """This process's handle on the store that the others open."""
        async with open_store(process_url) as shared:
            yield shared
            assert list(await shared.check()) == []

    @pytest.fixture
    def spawn(self, processes: StoreProcesses, process_url: str, shared: Store) -> Spawn:
        """Run an act of `testing.acts` in several processes at once, and gather the answers."""

        def spawn(act: str, *each: Json, **same: Json) -> Coroutine[Any, Any, list[Json]]:
            arguments = [same | own for own in each] or [same] * PROCESSES
            return asyncio.to_thread(processes.race, process_url, act, arguments)

        return spawn

    async def test_two_hundred_submits_of_one_idempotency_key_make_one_task(
        self, shared: Store, spawn: Spawn
    ) -> None:
        shares = await spawn("submit_same", times=50, idempotency_key="order-7", fingerprint="f")

        answers = [answer for share in shares for answer in share]
        outcomes = Counter(outcome for _, outcome in answers)
        assert outcomes == {"created": 1, "idempotency_key": 199}
        assert await all_ids(shared) == list({task for task, _ in answers})

    async def test_two_hundred_submits_of_one_unique_key_make_one_task(
        self, shared: Store, spawn: Spawn
    ) -> None:
        shares = await spawn("submit_same", times=50, unique_key="report")

        answers = [answer for share in shares for answer in share]
        assert Counter(outcome for _, outcome in answers) == {"created": 1, "unique_key": 199}
        assert await all_ids(shared) == list({task for task, _ in answers})

    async def test_processes_start_every_task_exactly_once(
        self, shared: Store, spawn: Spawn
    ) -> None:
        batch = new_tasks(self.drained)
        await add(shared, *batch)

        shares = await spawn("drain", limit=20)

        starts = [start for share in shares for start in share["starts"]]
        assert sorted(starts) == [[new.id, 1] for new in batch]
        assert (await shared.stats()).states[State.COMPLETED] == self.drained

    async def test_three_processors_on_a_hundred_tasks_start_a_hundred(
        self, shared: Store, spawn: Spawn
    ) -> None:
        batch = new_tasks(100)
        await add(shared, *batch)

        shares = await spawn("drain", {}, {}, {}, limit=1)

        starts = [start for share in shares for start in share["starts"]]
        assert sorted(starts) == [[new.id, 1] for new in batch]

    async def test_tasks_submitted_while_others_drain_are_each_started_once(
        self, shared: Store, spawn: Spawn
    ) -> None:
        async def submit_meanwhile() -> list[TaskId]:
            ids = []
            for _ in range(self.drained // 50):
                ids += [answer.task_id for answer in await add(shared, *new_tasks(10))]
            return ids

        ids, shares = await asyncio.gather(
            submit_meanwhile(), spawn("drain", until=self.drained // 5)
        )

        starts = [start for share in shares for start in share["starts"]]
        assert sorted(starts) == [[task, 1] for task in sorted(ids)]

    async def test_processes_never_hold_one_lock_together_and_fences_grow(
        self, shared: Store, spawn: Spawn
    ) -> None:
        number = self.some(150)
        await add(shared, *(new_task(lock=f"doc:{n % 3}") for n in range(number)))

        shares = await spawn("drain", limit=2)

        holds = [tuple(hold) for share in shares for hold in share["holds"]]
        assert len(holds) == number
        assert overlaps([hold[:3] for hold in holds]) == []
        in_time = sorted(holds)
        assert all(a[3] < b[3] for a, b in pairwise(in_time) if a[0] == b[0])
        assert len({hold[3] for hold in holds}) == number

    async def test_of_processes_that_end_one_attempt_differently_one_wins(
        self, shared: Store, spawn: Spawn
    ) -> None:
        await add(shared, *new_tasks(40))
        claims = await claim(shared, await enlist(shared))
        fences = [[c.task_id, c.attempt, c.worker_id] for c in claims]

        shares = await spawn(
            "settle",
            *({"ended": ended} for ended in ("completed", "error", "timeout", "cancelled")),
            fences=fences,
        )

        taken = [task for share in shares for task in share]
        assert sorted(taken) == [c.task_id for c in claims]
        assert (await shared.stats()).refused == 3 * len(claims)
        assert {len(await attempts(shared, c.task_id)) for c in claims} == {1}

    async def test_processes_that_rescue_the_same_tasks_charge_one_crash(
        self, shared: Store, spawn: Spawn
    ) -> None:
        await add(shared, *new_tasks(50))
        worker = await enlist(shared)
        claims = await claim(shared, worker)
        await shared.bury(worker, beats=None)

        refused = await spawn("rescue")

        assert refused == [0] * PROCESSES
        assert {(await get(shared, c.task_id)).crash_count for c in claims} == {1}

    async def test_a_worker_is_buried_by_one_of_many_processes(
        self, shared: Store, spawn: Spawn
    ) -> None:
        workers = [await enlist(shared) for _ in range(30)]

        shares = await spawn("bury", workers=workers)

        assert sorted(worker for share in shares for worker in share) == sorted(workers)

    async def test_a_dead_letter_is_replayed_by_one_of_many_processes(
        self, shared: Store, spawn: Spawn
    ) -> None:
        batch = new_tasks(60, max_retries=0)
        await add(shared, *batch)
        await save(shared, *map(failure, await claim(shared, await enlist(shared))))

        shares = await spawn("replay", limit=3)

        assert sorted(task for share in shares for task in share) == [new.id for new in batch]

    async def test_a_storm_of_everything_leaves_a_store_in_order(
        self, shared: Store, spawn: Spawn
    ) -> None:
        await spawn("churn", *({"seed": seed} for seed in range(PROCESSES)), rounds=self.some(40))

        await spawn("drain", {})
        assert await shared.count(TaskFilter(states=UNFINISHED), limit=1) == 0
        stats = await shared.stats()
        assert sum(stats.states.values()) == await shared.count(TaskFilter(), limit=100_000)
        assert all(q.ready == q.running == q.blocked == q.waiting == 0 for q in stats.queues)

    async def test_what_a_killed_claimer_held_is_found_and_started_elsewhere(
        self, shared: Store, process_url: str
    ) -> None:
        batch = new_tasks(10)
        await add(shared, *batch)
        worker = worker_id("victim")
        victim = StoreProcess()
        victim.prepare(process_url, "claim_and_stop", {"worker": worker, "limit": 6})
        victim.tell(GO)
        held = victim.hear()

        victim.kill()

        assert list(await shared.orphans(limit=MANY)) == []
        await shared.bury(worker, beats=0)
        assert [orphan.task_id for orphan in await shared.orphans(limit=MANY)] == held
        assert {await state(shared, new.id) for new in batch[6:]} == {State.QUEUED}

    async def test_what_was_acknowledged_to_a_killed_submitter_is_there(
        self, shared: Store, process_url: str
    ) -> None:
        if "durable" not in shared.abilities:
            pytest.skip("this store keeps nothing beyond its process (no ability `durable`)")
        victim = StoreProcess()
        victim.prepare(process_url, "submit_for_ever", {})
        victim.tell(GO)
        acknowledged = [victim.hear() for _ in range(50)]

        victim.kill()

        assert set(acknowledged) <= set(await all_ids(shared))

    async def test_a_killed_worker_has_opened_a_latch_for_every_end_and_for_nothing_else(
        self, shared: Store, process_url: str
    ) -> None:
        victim = StoreProcess()
        victim.prepare(process_url, "work_for_ever", {})
        victim.tell(GO)
        for _ in range(20):
            victim.hear()

        victim.kill()

        ended = await shared.count(TaskFilter(states=TERMINAL, name="first"), limit=MANY)
        free = frozenset({State.QUEUED})
        assert await shared.count(TaskFilter(states=free, name="second"), limit=MANY) == ended
        assert ended >= 50
