"""Attempts that go on later, behind a latch: the task has one more gate from that settlement on."""

from __future__ import annotations

import pytest

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.gate import Count, Gate, GateKind, latch_of
from holdfast.core.lifecycle import Deferred, Failed
from holdfast.core.record import Changes, Put
from holdfast.core.task import AttemptEnd, Cause, NewTask, State, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    HEAD_STARTS,
    behind,
    failure,
    new_task,
    new_tasks,
    settled,
    success,
    task_error,
)
from holdfast.testing.suites.base import (
    StoreSuite,
    add,
    attempts,
    claim,
    claim_ids,
    claim_one,
    get,
    only,
    save,
    started,
    state,
    submit,
)

GROUP = "latch:group"


def deferred(found: Claim, also: Changes | None = None, delay: float = 0.0) -> Settlement:
    """The attempt goes on when the group has ended."""
    return settled(found, Deferred(delay, GROUP, also))


def group_of(*members: NewTask, name: str = "group") -> Changes:
    """A commit that makes the group of these."""
    counted = [new._replace(counts=(GROUP,)) for new in members]
    note = Put("note", name, "{}", version=0)
    return Changes(name, counted, [note], counts=[Count(GROUP, len(members))])


class DeferSuite(StoreSuite):
    """`Settlement.behind`, with and without what comes along."""

    async def test_an_attempt_goes_on_when_the_tasks_that_it_brought_along_have_ended(
        self, store: Store, worker: WorkerId
    ) -> None:
        parent = await started(store, worker)
        members = new_tasks(2)

        await save(store, deferred(parent, group_of(*members)))

        assert await state(store, parent.task_id) is State.BLOCKED
        first, second = await claim(store, worker)
        assert [first.task_id, second.task_id] == [new.id for new in members]
        await save(store, success(first))
        assert await state(store, parent.task_id) is State.BLOCKED
        await save(store, failure(second, retriable=False))
        again = await claim_one(store, worker)
        assert (again.task_id, again.attempt, again.cause) == (parent.task_id, 2, Cause.RESUMED)
        assert (again.charged, again.crash_count) == (0, 0)
        await save(store, success(again))
        assert await state(store, parent.task_id) is State.COMPLETED

    async def test_the_latch_stays_among_its_gates(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        own = Gate(GateKind.LIMIT, "a", 2)
        parent = await started(store, worker, gates=(own,), lock="doc")
        rank = (await get(store, parent.task_id)).rank
        await save(store, deferred(parent, group_of(new_task())))

        task = await get(store, parent.task_id)
        assert task.gates == (*behind(GROUP), own)
        assert (task.state, task.rank) == (State.BLOCKED, rank)
        member = await claim_one(store, worker)
        await save(store, success(member))
        again = await claim_one(store, worker)
        await save(store, failure(again, backoff=5.0))
        clock.advance(5)
        assert await claim_ids(store, worker) == [parent.task_id]

    async def test_nothing_is_held_meanwhile(self, store: Store, worker: WorkerId) -> None:
        gates = (Gate(GateKind.LIMIT, "a"),)
        parent = await started(store, worker, gates=gates, lock="doc")
        other = await submit(store, gates=gates, lock="doc")

        await save(store, deferred(parent, group_of(new_task(delay=60.0))))

        assert await claim_ids(store, worker) == [other]

    async def test_one_without_gates_has_one_from_then_on_wherever_it_goes(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        parent = await started(store, worker)
        member = new_task()
        await save(store, deferred(parent, group_of(member), delay=10.0))
        assert await state(store, parent.task_id) is State.QUEUED
        clock.advance(10)

        found = await claim_one(store, worker)

        assert found.task_id == member.id
        assert await state(store, parent.task_id) is State.BLOCKED
        await store.cancel(only(parent.task_id), limit=1)
        assert await state(store, parent.task_id) is State.CANCELLED
        await store.requeue(only(parent.task_id), limit=1, head_starts=HEAD_STARTS)
        assert await state(store, parent.task_id) is State.BLOCKED
        await save(store, success(found))
        assert await claim_ids(store, worker) == [parent.task_id]

    async def test_an_open_or_unknown_latch_keeps_nobody(
        self, store: Store, worker: WorkerId
    ) -> None:
        parent = await started(store, worker)

        await save(store, deferred(parent))

        assert await claim_ids(store, worker) == [parent.task_id]

    async def test_the_end_of_another_task_can_be_stood_behind(
        self, store: Store, worker: WorkerId
    ) -> None:
        other = await started(store, worker)
        parent = await started(store, worker)

        await save(store, settled(parent, Deferred(behind=latch_of(other.task_id))))

        assert await state(store, parent.task_id) is State.BLOCKED
        await save(store, success(other))
        assert await claim_ids(store, worker) == [parent.task_id]

    async def test_to_stand_behind_it_twice_changes_nothing(
        self, store: Store, worker: WorkerId
    ) -> None:
        parent = await started(store, worker)
        await save(store, deferred(parent))
        again = await claim_one(store, worker)
        await save(store, deferred(again))

        assert (await get(store, parent.task_id)).gates == behind(GROUP)
        assert await claim_ids(store, worker) == [parent.task_id]

    async def test_a_latch_that_had_opened_is_closed_if_it_is_counted_up(
        self, store: Store, worker: WorkerId
    ) -> None:
        """The body of a parent that was started anew has new children."""
        parent = await started(store, worker)
        await save(store, deferred(parent, group_of(new_task())))
        await save(store, failure(await claim_one(store, worker), retriable=False))
        await save(store, success(await claim_one(store, worker)))
        await store.requeue(only(parent.task_id), limit=1, head_starts=HEAD_STARTS)
        again = await claim_one(store, worker)

        await save(store, deferred(again, group_of(new_task(), name="again")))

        assert await state(store, parent.task_id) is State.BLOCKED
        (latch,) = await store.gates(names=[GROUP], limit=1)
        assert (latch.left, latch.failed, latch.is_open) == (1, 1, False)
        await save(store, success(await claim_one(store, worker)))
        assert await claim_ids(store, worker) == [parent.task_id]

    async def test_several_in_one_batch_each_with_what_it_brings(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(3))
        one, two, three = await claim(store, worker)
        others = Changes("two", [new_task(counts=("latch:b",))], counts=[Count("latch:b", 1)])
        second = settled(two, Deferred(behind="latch:b", also=others))

        await save(store, deferred(one, group_of(new_task())), second, success(three))

        members = await claim(store, worker)
        assert len(members) == 2
        await save(store, *map(success, members))
        assert await claim_ids(store, worker) == [one.task_id, two.task_id]

    async def test_a_repeat_of_it_changes_nothing(self, store: Store, worker: WorkerId) -> None:
        parent = await started(store, worker)
        settlement = deferred(parent, group_of(new_task()))
        await save(store, settlement)

        await save(store, settlement)

        await save(store, success(await claim_one(store, worker)))
        assert await claim_ids(store, worker) == [parent.task_id]
        first, _ = await attempts(store, parent.task_id)
        assert first.ended is AttemptEnd.RELEASED

    async def test_if_what_it_brings_clashes_the_attempt_goes_on(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.commit(Changes("x", records=[Put("note", "group", "{}")]))
        parent = await started(store, worker)
        member = new_task()

        (refusal,) = await store.save([deferred(parent, group_of(member))])

        assert refusal.conflict is not None
        task = await get(store, parent.task_id)
        assert (task.state, task.gates) == (State.RUNNING, ())
        assert await store.get(member.id) is None
        assert await store.gates(limit=10) == []

    async def test_one_that_was_asked_to_stop_ends_and_brings_nothing_along(
        self, store: Store, worker: WorkerId
    ) -> None:
        parent = await started(store, worker)
        await store.cancel(only(parent.task_id), limit=1)
        member = new_task()

        await save(store, deferred(parent, group_of(member)))

        task = await get(store, parent.task_id)
        assert (task.state, task.gates) == (State.CANCELLED, ())
        assert await store.get(member.id) is None
        assert await store.records("note", limit=1) == []
        assert await store.gates(limit=10) == []

    async def test_a_late_one_brings_nothing_along(self, store: Store, worker: WorkerId) -> None:
        parent = await started(store, worker)
        await save(store, success(parent))
        member = new_task()

        (refusal,) = await store.save([deferred(parent, group_of(member))])

        assert refusal.conflict is None
        assert await store.get(member.id) is None
        assert (await get(store, parent.task_id)).gates == ()

    @pytest.mark.parametrize("retriable", [True, False], ids=["retried", "failed"])
    async def test_a_failed_attempt_brings_along_what_it_must(
        self, store: Store, worker: WorkerId, retriable: bool
    ) -> None:
        found = await started(store, worker)
        note = Changes("c", [new_task()], [Put("note", "n", "{}")])
        error = task_error(retriable=retriable)
        settlement = settled(found, Failed(error))._replace(also=note)

        await save(store, settlement)

        ends = State.RETRYING if retriable else State.FAILED
        assert await state(store, found.task_id) is ends
        assert [record.key for record in await store.records("note", limit=2)] == ["n"]
        assert await claim_ids(store, worker) == [note.tasks[0].id]
