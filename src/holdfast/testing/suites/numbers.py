"""Stats: the store in numbers."""

from __future__ import annotations

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.stats import QueueStats
from holdfast.core.task import Priority, State, WorkerId
from holdfast.pauses import pause, resume
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    HEAD_STARTS,
    failure,
    loss,
    new_tasks,
    release,
    success,
)
from holdfast.testing.suites.base import (
    EVERYTHING,
    MANY,
    StoreSuite,
    add,
    claim,
    claim_one,
    ended,
    enlist,
    only,
    save,
    started,
    submit,
)
from holdfast.testing.suites.races import in_threads


async def _queue(store: Store, name: str = "default") -> QueueStats:
    stats = await store.stats()
    found = [queue for queue in stats.queues if queue.queue == name]
    nothing = QueueStats(
        queue=name, paused=False, ready=0, waiting=0, blocked=0, running=0, depths=()
    )
    return found[0] if found else nothing


async def _numbers(store: Store, name: str = "default") -> tuple[int, int, int, int]:
    found = await _queue(store, name)
    return found.ready, found.waiting, found.blocked, found.running


class StatsSuite(StoreSuite):
    """Counts that stay right through every move."""

    async def test_an_empty_store_counts_nothing_in_every_state(self, store: Store) -> None:
        stats = await store.stats()

        assert dict(stats.states) == dict.fromkeys(State, 0)
        assert dict(stats.last_minute) == dict.fromkeys(TERMINAL, 0)
        assert (list(stats.queues), stats.refused) == ([], 0)

    async def test_states_count_the_tasks_kept(self, store: Store, worker: WorkerId) -> None:
        await ended(store, worker, success)
        await ended(store, worker, success)
        await ended(store, worker, failure)
        await ended(store, worker, failure, max_retries=0)
        await ended(store, worker, lambda c: failure(c, retriable=False))
        await started(store, worker, lock="doc:1")
        await submit(store, lock="doc:1")
        await submit(store)
        await submit(store, delay=60.0)
        await store.cancel(only(await submit(store)), limit=1)

        assert dict((await store.stats()).states) == {
            State.QUEUED: 2,
            State.RUNNING: 1,
            State.RETRYING: 1,
            State.BLOCKED: 1,
            State.COMPLETED: 2,
            State.FAILED: 1,
            State.CANCELLED: 1,
            State.DEAD_LETTER: 1,
        }

    async def test_discarded_tasks_are_no_longer_counted(
        self, store: Store, worker: WorkerId
    ) -> None:
        await ended(store, worker, success)

        await store.discard(EVERYTHING, limit=MANY)

        assert sum((await store.stats()).states.values()) == 0

    async def test_pruned_tasks_are_no_longer_counted(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, success)
        await ended(store, worker, failure, max_retries=0)
        clock.advance(100)

        await store.prune(retention=10, dead_letter_retention=1000, limit=MANY)

        states = (await store.stats()).states
        assert (states[State.COMPLETED], states[State.DEAD_LETTER]) == (0, 1)

    async def test_a_queue_counts_its_places(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, lambda c: failure(c, backoff=500.0))
        await ended(store, worker, success)
        await started(store, worker, lock="doc:1")
        await add(store, *new_tasks(2, lock="doc:1"))
        await add(store, *new_tasks(3))
        await add(store, *new_tasks(4, delay=60.0))

        assert await _numbers(store) == (3, 5, 2, 1)

    async def test_a_queue_is_followed_through_a_whole_life(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        seen = []

        async def look() -> None:
            seen.append(await _numbers(store))

        task = await submit(store, delay=5.0, max_retries=1)
        await look()
        clock.advance(5)
        found = await claim_one(store, worker)
        await look()
        await save(store, release(found))
        await look()
        await save(store, failure(await claim_one(store, worker)))
        await look()
        clock.advance(10)
        await claim(store, worker, queues=["other"])
        await look()
        await save(store, failure(await claim_one(store, worker)))
        await look()
        await store.requeue(only(task), limit=1, head_starts=HEAD_STARTS)
        await look()
        await store.cancel(only(task), limit=1)
        await look()

        assert seen == [
            (0, 1, 0, 0),
            (0, 0, 0, 1),
            (1, 0, 0, 0),
            (0, 1, 0, 0),
            (1, 0, 0, 0),
            (0, 0, 0, 0),
            (1, 0, 0, 0),
            (0, 0, 0, 0),
        ]

    async def test_queues_are_counted_apart(self, store: Store, worker: WorkerId) -> None:
        await submit(store, queue="a")
        await started_in(store, worker, "b")
        await submit(store, queue="b", delay=9.0)

        assert await _numbers(store, "a") == (1, 0, 0, 0)
        assert await _numbers(store, "b") == (0, 1, 0, 1)
        assert await _numbers(store, "default") == (0, 0, 0, 0)

    async def test_a_queue_with_unfinished_tasks_is_listed(self, store: Store) -> None:
        for name in ("b", "a", "ü"):
            await submit(store, queue=name, delay=5.0)

        assert {queue.queue for queue in (await store.stats()).queues} == {"a", "b", "ü"}

    async def test_a_paused_queue_is_listed_as_such_though_empty(self, store: Store) -> None:
        await pause(store, "mail")

        assert (await _queue(store, "mail")).paused is True

        await resume(store, "mail")
        assert (await _queue(store, "mail")).paused is False

    async def test_depths_tell_how_much_of_each_priority_is_ready(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(3, priority=Priority.LOW))
        clock.advance(4)
        await add(store, *new_tasks(2, priority=Priority.HIGH))
        await submit(store, priority=Priority.HIGH, delay=60.0)
        clock.advance(6)

        depths = {d.priority: d for d in (await _queue(store)).depths if d.ready}

        assert {p: (d.ready, d.oldest_seconds) for p, d in depths.items()} == {
            Priority.HIGH: (2, 6.0),
            Priority.LOW: (3, 10.0),
        }

    async def test_the_oldest_is_counted_from_its_eligible_instant(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await submit(store, delay=5.0)
        clock.advance(8)
        await claim(store, worker, queues=["other"])

        (depth,) = [d for d in (await _queue(store)).depths if d.ready]
        assert depth.oldest_seconds == 3.0

    async def test_the_last_minute_counts_what_ended_within_it(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await ended(store, worker, success)
        clock.advance(30)
        await ended(store, worker, failure, max_retries=0)
        await ended(store, worker, success)
        clock.advance(29)
        before = dict((await store.stats()).last_minute)
        clock.advance(2)
        after = dict((await store.stats()).last_minute)

        assert (before[State.COMPLETED], before[State.DEAD_LETTER]) == (2, 1)
        assert (after[State.COMPLETED], after[State.DEAD_LETTER]) == (1, 1)

    async def test_refused_counts_every_stale_write(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)
        await save(store, loss(found))

        await store.save([success(found), success(found)])

        assert (await store.stats()).refused == 2

    async def test_the_numbers_are_right_after_a_storm(self, store: Store) -> None:
        async def work(index: int) -> None:
            worker = await enlist(store)
            await add(store, *new_tasks(20, queue=f"q{index % 2}"))
            for found in await claim(store, worker, limit=15):
                settle = (success, release, failure)[found.task_id.encode()[-1] % 3]
                await save(store, settle(found))

        await in_threads(4, work)

        stats = await store.stats()
        listed = (await store.list(EVERYTHING, limit=MANY)).tasks
        for state in State:
            assert stats.states[state] == sum(task.state is state for task in listed)
        places = [await _numbers(store, name) for name in ("q0", "q1")]
        assert sum(map(sum, places)) == sum(task.state not in TERMINAL for task in listed)


async def started_in(store: Store, worker: WorkerId, queue: str) -> None:
    await submit(store, queue=queue)
    await claim_one(store, worker, queues=[queue])
