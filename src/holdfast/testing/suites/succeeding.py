"""Succeeding: who is next in line for a key that was let go, for those who wake them."""

from __future__ import annotations

from holdfast.core.task import Priority, WorkerId
from holdfast.ports.dispatcher import EVERYBODY
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import new_task, release, success
from holdfast.testing.suites.base import (
    EVERYTHING,
    MANY,
    OpenAnother,
    Settle,
    StoreSuite,
    add,
    claim,
    claim_one,
    ended,
    only,
    save,
    started,
    submit,
)
from holdfast.testing.suites.unlocking import KEY, whatever_lets_go


class SuccessionSuite(StoreSuite):
    """`next_in_line` names the queues of ready holders, and is right once a key was passed on."""

    @whatever_lets_go
    async def test_the_next_is_known_as_soon_as_its_holder_is_settled(
        self, store: Store, worker: WorkerId, settle: Settle
    ) -> None:
        first = await started(store, worker, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="b")

        await save(store, settle(first))

        assert await store.next_in_line([KEY]) == {"b": 1}

    async def test_a_ready_holder_is_next(self, store: Store) -> None:
        await submit(store, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="b")

        assert await store.next_in_line([KEY]) == {"a": 1}

    async def test_nobody_is_next_while_the_holder_runs(
        self, store: Store, worker: WorkerId
    ) -> None:
        await started(store, worker, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="b")

        assert await store.next_in_line([KEY]) == {}

    async def test_nobody_is_next_for_a_key_that_nobody_holds(
        self, store: Store, worker: WorkerId
    ) -> None:
        await ended(store, worker, success, lock=KEY)
        await submit(store, lock="later", delay=60.0)

        assert await store.next_in_line([KEY, "later", "never", "", "no\ud800text"]) == {}

    async def test_no_keys_no_answer(self, store: Store) -> None:
        await submit(store, lock=KEY)
        await submit(store)

        assert await store.next_in_line([]) == {}

    async def test_keys_are_told_apart_exactly(self, store: Store) -> None:
        for number, key in enumerate(("doc", "Doc", "doc ", "doc%", "döc", "")):
            await submit(store, lock=key, queue=f"q{number}")

        assert await store.next_in_line(["Doc", "döc", ""]) == {"q1": 1, "q4": 1, "q5": 1}

    async def test_each_queue_is_told_how_many_of_its_tasks_are_next(
        self, store: Store, worker: WorkerId
    ) -> None:
        keys = [f"doc:{number}" for number in range(7)]
        await add(store, *(new_task(lock=key, queue="first") for key in keys))
        await add(
            store,
            *(
                new_task(lock=key, queue="ab"[number % 2], priority=Priority.LOW)
                for number, key in enumerate(keys)
            ),
        )
        running = await claim(store, worker, queues=["first"])
        await save(store, *map(success, running[:5]))

        assert await store.next_in_line(keys) == {"a": 3, "b": 2}
        assert await store.next_in_line([*keys[:2], *keys[:2]]) == {"a": 1, "b": 1}

    async def test_tasks_of_one_queue_count_together_whatever_their_priority(
        self, store: Store
    ) -> None:
        await add(store, *(new_task(lock=str(p), priority=p) for p in Priority))

        assert await store.next_in_line([str(p) for p in Priority]) == {"default": len(Priority)}

    async def test_one_that_requires_something_is_for_everybody_to_look_at(
        self, store: Store
    ) -> None:
        await submit(store, lock="plain", queue="a")
        await submit(store, lock="films", queue="a", requires=frozenset({"gpu"}))
        await submit(store, lock="songs", queue="b")

        assert await store.next_in_line(["plain", "films", "songs"]) == {"a": EVERYBODY, "b": 1}

    async def test_a_more_urgent_task_that_took_the_place_of_the_holder_is_next(
        self, store: Store
    ) -> None:
        await submit(store, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="b", priority=Priority.HIGH)

        assert await store.next_in_line([KEY]) == {"b": 1}

    async def test_a_task_handed_back_is_next_by_its_rank(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        first = await started(store, worker, lock=KEY, queue="a")
        clock.advance(1)
        await submit(store, lock=KEY, queue="b")

        await save(store, release(first))

        assert await store.next_in_line([KEY]) == {"a": 1}

    async def test_the_next_is_known_when_a_ready_holder_was_cancelled(self, store: Store) -> None:
        first = await submit(store, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="b")

        await store.cancel(only(first), limit=1)

        assert await store.next_in_line([KEY]) == {"b": 1}
        await store.cancel(EVERYTHING, limit=MANY)
        assert await store.next_in_line([KEY]) == {}

    async def test_asking_changes_nothing(self, store: Store, worker: WorkerId) -> None:
        first = await submit(store, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="b")

        for _ in range(3):
            assert await store.next_in_line([KEY]) == {"a": 1}

        assert (await claim_one(store, worker)).task_id == first

    async def test_others_know_the_next_too(
        self, store: Store, worker: WorkerId, open_another: OpenAnother
    ) -> None:
        other = await open_another()
        first = await started(store, worker, lock=KEY, queue="a")
        await submit(store, lock=KEY, queue="seen nowhere before")

        await save(store, success(first))

        assert await other.next_in_line([KEY]) == {"seen nowhere before": 1}
