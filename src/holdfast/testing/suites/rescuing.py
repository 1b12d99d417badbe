"""Rescue: who is alive, whose tasks are orphaned. Beats are the judge, not a clock."""

from __future__ import annotations

from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.task import AttemptEnd, Cause, Reason, State, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import loss, new_tasks, success, worker_info
from holdfast.testing.suites.base import (
    MANY,
    StoreSuite,
    add,
    attempts,
    claim,
    claim_one,
    enlist,
    get,
    leave,
    only,
    save,
    started,
    state,
    submit,
)
from holdfast.testing.suites.races import at_once, in_threads


async def _info(store: Store, worker: WorkerId) -> WorkerInfo:
    (found,) = [info for info in await store.workers() if info.id == worker]
    return found


class WorkerSuite(StoreSuite):
    """Registering, beating, stopping."""

    async def test_a_registered_worker_is_listed_as_it_described_itself(
        self, store: Store, clock: FakeClock
    ) -> None:
        info = worker_info(
            host="höst",
            pid=77,
            version="1.2.3",
            queues=("mail", "film"),
            capabilities=frozenset({"gpu", "fast"}),
            capacity=16,
        )

        await store.register(info)

        found = await _info(store, info.id)
        assert (found.host, found.pid, found.version) == ("höst", 77, "1.2.3")
        assert (found.queues, found.capabilities) == (("mail", "film"), frozenset({"gpu", "fast"}))
        assert (found.capacity, found.load, found.beats) == (16, 0, 0)
        assert (found.status, found.started_at) == (WorkerStatus.ACTIVE, clock.now)
        assert found.beat_at == clock.now

    async def test_a_worker_of_every_queue_comes_back_as_such(self, store: Store) -> None:
        info = worker_info(queues=None)

        await store.register(info)

        assert (await _info(store, info.id)).queues is None

    async def test_workers_are_listed_newest_first(self, store: Store, clock: FakeClock) -> None:
        ids = []
        for _ in range(3):
            ids.append(await enlist(store))
            clock.advance(1)

        assert [info.id for info in await store.workers()] == ids[::-1]

    async def test_registering_again_changes_nothing(self, store: Store, clock: FakeClock) -> None:
        info = worker_info()
        await store.register(info)
        await store.beat(info.id)
        clock.advance(1)
        before = await store.workers()

        await store.register(info)

        assert await store.workers() == before

    async def test_a_beat_grows_the_count_and_tells_the_time(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        clock.advance(7)

        assert await store.beat(worker) is True
        assert await store.beat(worker) is True

        found = await _info(store, worker)
        assert (found.beats, found.beat_at) == (2, clock.now)

    async def test_a_beat_carries_load_and_status(self, store: Store, worker: WorkerId) -> None:
        await store.beat(worker, load=3, status=WorkerStatus.DRAINING)

        found = await _info(store, worker)
        assert (found.load, found.status) == (3, WorkerStatus.DRAINING)

    async def test_a_beat_without_load_and_status_leaves_them(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.beat(worker, load=3, status=WorkerStatus.DRAINING)

        await store.beat(worker)

        found = await _info(store, worker)
        assert (found.load, found.status) == (3, WorkerStatus.DRAINING)

    async def test_a_beat_says_which_task_blocks_the_worker(
        self, store: Store, worker: WorkerId
    ) -> None:
        async def blocked_by() -> str | None:
            (found,) = await store.workers()
            return found.blocked_by

        assert await blocked_by() is None
        assert await store.beat(worker, blocked_by="a-task")
        assert await store.beat(worker)
        assert await blocked_by() == "a-task"
        assert await store.beat(worker, blocked_by="")
        assert await blocked_by() is None

    async def test_a_load_of_zero_is_a_load(self, store: Store, worker: WorkerId) -> None:
        await store.beat(worker, load=3)

        await store.beat(worker, load=0)

        assert (await _info(store, worker)).load == 0

    async def test_an_unknown_worker_cannot_beat(self, store: Store) -> None:
        assert await store.beat(WorkerId("nobody")) is False
        assert list(await store.workers()) == []

    async def test_a_stopped_worker_cannot_beat(self, store: Store, worker: WorkerId) -> None:
        await leave(store, worker)

        assert await store.beat(worker, load=5) is False

        found = await _info(store, worker)
        assert (found.status, found.beats, found.load) == (WorkerStatus.STOPPED, 1, 0)

    async def test_a_worker_leaves_once_and_an_unknown_one_never(
        self, store: Store, worker: WorkerId
    ) -> None:
        assert await leave(store, WorkerId("nobody")) is False
        assert [await leave(store, worker) for _ in range(2)] == [True, False]

        assert [info.id for info in await store.workers()] == [worker]

    async def test_a_dead_worker_that_leaves_stays_dead(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.bury(worker, beats=None)

        assert await leave(store, worker) is False

        assert (await _info(store, worker)).status is WorkerStatus.DEAD


class RescueSuite(StoreSuite):
    """Burying the silent, and starting their tasks elsewhere."""

    async def test_a_worker_is_buried_if_its_beats_did_not_grow(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.beat(worker)

        assert await store.bury(worker, beats=1) is True

        assert (await _info(store, worker)).status is WorkerStatus.DEAD

    async def test_a_worker_that_has_beaten_since_is_not_buried(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.beat(worker)

        assert await store.bury(worker, beats=0) is False

        assert (await _info(store, worker)).status is WorkerStatus.ACTIVE
        assert await store.beat(worker) is True

    async def test_a_draining_worker_can_be_buried(self, store: Store, worker: WorkerId) -> None:
        await store.beat(worker, status=WorkerStatus.DRAINING)

        assert await store.bury(worker, beats=1) is True

    async def test_a_worker_is_buried_once(self, store: Store, worker: WorkerId) -> None:
        assert [await store.bury(worker, beats=0) for _ in range(2)] == [True, False]

    async def test_a_worker_is_buried_whatever_its_beats_when_none_are_given(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.beat(worker)

        assert await store.bury(worker, beats=None) is True

    async def test_unknown_and_stopped_workers_cannot_be_buried(
        self, store: Store, worker: WorkerId
    ) -> None:
        await leave(store, worker)

        assert await store.bury(WorkerId("nobody"), beats=None) is False
        assert await store.bury(worker, beats=None) is False
        assert (await _info(store, worker)).status is WorkerStatus.STOPPED

    async def test_a_buried_worker_cannot_beat(self, store: Store, worker: WorkerId) -> None:
        await store.bury(worker, beats=0)

        assert await store.beat(worker, status=WorkerStatus.ACTIVE) is False
        assert (await _info(store, worker)).status is WorkerStatus.DEAD

    async def test_a_buried_worker_may_still_settle_what_nobody_else_was_given(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.bury(worker, beats=None)

        await save(store, success(found))

        assert await state(store, found.task_id) is State.COMPLETED

    async def test_one_of_many_racing_burials_wins(self, store: Store, worker: WorkerId) -> None:
        answers = await at_once(20, lambda _: store.bury(worker, beats=0))

        assert sum(answers) == 1

    async def test_a_burial_racing_with_a_beat_never_buries_a_beaten_heart(
        self, store: Store
    ) -> None:
        workers = [await enlist(store) for _ in range(30)]

        async def act(index: int) -> bool:
            worker = workers[index // 2]
            return await (store.beat(worker) if index % 2 else store.bury(worker, beats=0))

        answers = await at_once(60, act)

        for worker, buried, beaten in zip(workers, answers[::2], answers[1::2], strict=True):
            assert buried != beaten
            dead = (await _info(store, worker)).status is WorkerStatus.DEAD
            assert dead == buried

    async def test_the_tasks_of_the_living_are_no_orphans(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await started(store, worker)
        clock.advance(86_400)

        assert list(await store.orphans(limit=MANY)) == []

    async def test_the_tasks_of_a_draining_worker_are_no_orphans(
        self, store: Store, worker: WorkerId
    ) -> None:
        await started(store, worker)
        await store.beat(worker, status=WorkerStatus.DRAINING)

        assert list(await store.orphans(limit=MANY)) == []

    async def test_the_tasks_of_the_dead_are_orphans_as_they_were_claimed(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker, lock="doc:1", timeout=2.0, owner="anna")
        await store.bury(worker, beats=None)

        assert list(await store.orphans(limit=MANY)) == [found]

    async def test_the_tasks_of_a_stopped_worker_are_orphans(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await leave(store, worker)

        assert list(await store.orphans(limit=MANY)) == [found]

    async def test_the_tasks_of_a_forgotten_worker_are_orphans(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.bury(worker, beats=None)
        clock.advance(100)
        await store.prune(retention=10, dead_letter_retention=10, limit=MANY)

        assert list(await store.workers()) == []
        assert list(await store.orphans(limit=MANY)) == [found]

    async def test_an_orphan_tells_of_a_cancel_request(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.bury(worker, beats=None)
        await store.cancel(only(found.task_id), limit=1)

        assert list(await store.orphans(limit=MANY)) == [found._replace(cancel_requested=True)]

    async def test_asking_for_orphans_changes_nothing_and_keeps_to_its_limit(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(5))
        claims = await claim(store, worker)
        await store.bury(worker, beats=None)

        assert len(await store.orphans(limit=3)) == 3
        assert sorted(await store.orphans(limit=MANY)) == sorted(claims)

    async def test_a_rescued_task_is_ready_at_once_and_its_next_attempt_names_the_cause(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await store.bury(worker, beats=None)
        (orphan,) = await store.orphans(limit=MANY)

        await save(store, loss(orphan))

        again = await claim_one(store, await enlist(store))
        assert (again.attempt, again.cause) == (2, Cause.WORKER_LOST)
        assert (again.charged, again.crash_count) == (0, 1)
        first, second = await attempts(store, found.task_id)
        assert (first.ended, first.charged) == (AttemptEnd.WORKER_LOST, False)
        assert second.cause is Cause.WORKER_LOST
        assert list(await store.orphans(limit=MANY)) == []

    async def test_a_task_that_kills_its_workers_stops_as_poison(self, store: Store) -> None:
        task = await submit(store, max_retries=100)

        for _ in range(3):
            victim = await enlist(store)
            await claim_one(store, victim)
            await store.bury(victim, beats=None)
            await save(store, *map(loss, await store.orphans(limit=MANY)))

        found = await get(store, task)
        assert (found.state, found.reason) == (State.DEAD_LETTER, Reason.POISON)
        assert (found.crash_count, found.attempt, found.charged) == (3, 3, 0)

    async def test_many_rescuers_charge_one_crash(self, store: Store, worker: WorkerId) -> None:
        await add(store, *new_tasks(20))
        claims = await claim(store, worker)
        await store.bury(worker, beats=None)

        async def rescue(_: int) -> None:
            await save(store, *map(loss, await store.orphans(limit=MANY)))

        await in_threads(4, rescue)

        assert {(await get(store, c.task_id)).crash_count for c in claims} == {1}
        assert (await store.stats()).refused == 0
