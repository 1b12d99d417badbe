"""Tasks that a worker's code was not fit for: sent to those who know them, counted, given up."""

from __future__ import annotations

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.fleet import knows
from holdfast.core.lifecycle import CANCELLABLE_AT_ONCE, Unfit
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cause, Priority, Reason, State, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import HEAD_STARTS, new_tasks, settled, success, task_error
from holdfast.testing.suites.base import (
    MANY,
    OpenAnother,
    StoreSuite,
    add,
    all_ids,
    attempts,
    claim,
    claim_ids,
    claim_one,
    enlist,
    get,
    kinds,
    only,
    save,
    started,
    submit,
)

NAME = "demo"
KNOWN = (knows(NAME),)


def unknown(found: Claim, again_in: float | None = 0.0) -> Settlement:
    """What a worker settles a task as that it does not know."""
    error = task_error(type="UnknownTask", message="no such task", traceback=None)
    return settled(found, Unfit(error, Reason.UNKNOWN_TASK, again_in, knows(found.name)))


class UnfitSuite(StoreSuite):
    """`Settlement.needs`, `demand`, and `cancel` for another reason."""

    async def test_an_unknown_task_goes_only_to_those_who_know_it(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        await save(store, unknown(found))

        assert await claim(store, worker, capabilities=("gpu", knows("other"))) == []
        again = await claim_one(store, worker, capabilities=("gpu", *KNOWN))
        assert (again.task_id, again.attempt, again.charged) == (found.task_id, 2, 0)
        assert (again.cause, again.crash_count) == (Cause.RELEASED, 0)

    async def test_what_it_required_before_it_still_requires(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await submit(store, requires=frozenset({"gpu"}))
        await save(store, unknown(await claim_one(store, worker, capabilities=("gpu",))))

        assert (await get(store, task)).requires == {"gpu", *KNOWN}
        assert await claim(store, worker, capabilities=KNOWN) == []
        assert await claim_ids(store, worker, capabilities=("gpu", *KNOWN)) == [task]

    async def test_it_keeps_its_place_its_queue_and_its_priority(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await submit(store, queue="mail", priority=Priority.HIGH)
        before = await get(store, first)
        await save(store, unknown(await claim_one(store, worker)))
        second = await submit(store, queue="mail", priority=Priority.HIGH)

        after = await get(store, first)

        assert (after.queue, after.priority, after.rank) == ("mail", Priority.HIGH, before.rank)
        assert await claim(store, worker, capabilities=KNOWN, queues=["other"]) == []
        assert await claim_ids(store, worker, capabilities=KNOWN) == [first, second]

    async def test_the_history_says_why_and_charges_nothing(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        await save(store, unknown(found))

        (attempt,) = await attempts(store, found.task_id)
        assert (attempt.ended, attempt.charged) == (AttemptEnd.RELEASED, False)
        assert attempt.error is not None
        assert attempt.error.type == "UnknownTask"

    async def test_sent_twice_it_is_in_the_same_lane(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)
        await save(store, unknown(found))

        await save(store, unknown(await claim_one(store, worker, capabilities=KNOWN)))

        assert (await get(store, found.task_id)).requires == set(KNOWN)
        assert await claim_ids(store, worker, capabilities=KNOWN) == [found.task_id]

    async def test_many_are_sent_in_one_batch_beside_others(
        self, store: Store, worker: WorkerId
    ) -> None:
        every = [
            *new_tasks(3, name="new"),
            *new_tasks(3, name="newer", priority=Priority.LOW),
            *new_tasks(3),
        ]
        await add(store, *every)
        claims = await claim(store, worker)

        await save(store, *(success(c) if c.name == NAME else unknown(c) for c in claims))

        assert await claim(store, worker) == []
        assert len(await claim(store, worker, capabilities=(knows("newer"),))) == 3
        assert len(await claim(store, worker, capabilities=(knows("new"),))) == 3

    async def test_it_holds_its_lock_in_line_as_before(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await submit(store, lock="doc:7")
        await save(store, unknown(await claim_one(store, worker)))
        second = await submit(store, name="other", lock="doc:7")

        assert await claim_ids(store, worker, capabilities=KNOWN) == [first]
        assert (await get(store, second)).state is State.BLOCKED

    async def test_it_waits_its_time_where_it_is_sent(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await save(store, unknown(found, again_in=5.0))
        assert await claim(store, worker, capabilities=KNOWN) == []

        clock.advance(5)

        assert await claim(store, worker) == []
        assert await claim_ids(store, worker, capabilities=KNOWN) == [found.task_id]

    async def test_a_cancel_request_wins(self, store: Store, worker: WorkerId) -> None:
        found = await started(store, worker)
        await store.cancel(only(found.task_id), limit=1)

        await save(store, unknown(found))

        task = await get(store, found.task_id)
        assert (task.state, task.reason) == (State.CANCELLED, Reason.CANCELLED)

    async def test_another_handle_hands_it_out_alike(
        self, store: Store, worker: WorkerId, open_another: OpenAnother
    ) -> None:
        other = await open_another()
        assert await claim(other, worker) == []  # it has seen the lanes as they were
        await save(store, unknown(await started(store, worker)))

        assert await claim(other, await enlist(other)) == []
        assert len(await claim(other, worker, capabilities=KNOWN)) == 1

    async def test_demand_counts_by_what_is_required(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        gpu, both = frozenset({"gpu"}), frozenset({"gpu", "linux"})
        assert await store.demand() == {}
        await add(store, *new_tasks(2), *new_tasks(3, requires=gpu), *new_tasks(1, requires=both))
        await submit(store, requires=gpu, delay=60.0, queue="mail")
        assert await store.demand() == {gpu: 4, both: 1}

        await save(store, *map(success, await claim(store, worker, capabilities=("gpu",), limit=3)))

        assert sum((await store.demand()).values()) == 4

    async def test_demand_follows_what_is_sent_elsewhere(
        self, store: Store, worker: WorkerId
    ) -> None:
        await save(store, unknown(await started(store, worker)))
        assert await store.demand() == {frozenset(KNOWN): 1}

        await claim_one(store, worker, capabilities=KNOWN)

        assert await store.demand() == {}

    async def test_a_filter_finds_what_requires_a_capability(
        self, store: Store, worker: WorkerId
    ) -> None:
        await submit(store)
        one = await submit(store, requires=frozenset({"gpu", "linux"}))
        await submit(store, requires=frozenset({"gp", "gpu:2"}))

        assert await all_ids(store, TaskFilter(requires="gpu")) == [one]
        assert await all_ids(store, TaskFilter(requires="nobody")) == []

    async def test_a_filter_finds_what_could_run_before_an_instant(
        self, store: Store, clock: FakeClock
    ) -> None:
        now = await submit(store)
        later = await submit(store, delay=60.0)
        clock.advance(1)

        assert await all_ids(store, TaskFilter(run_before=clock.now)) == [now]
        clock.advance(60)
        assert await all_ids(store, TaskFilter(run_before=clock.now)) == [later, now]

    async def test_what_was_sent_back_counts_from_then(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        clock.advance(10)
        await save(store, unknown(found))

        assert await all_ids(store, TaskFilter(run_before=clock.now)) == []

    async def test_what_nobody_knows_is_given_up_as_a_dead_letter(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        found = await started(store, worker, unique_key="once", lock="doc:7")
        await save(store, unknown(found))
        behind = await submit(store, name="other", lock="doc:7")
        clock.advance(3600)
        old = TaskFilter(
            requires=knows(NAME), run_before=clock.now, states=frozenset(CANCELLABLE_AT_ONCE)
        )

        (gone,) = await store.cancel(old, limit=MANY, reason=Reason.UNKNOWN_TASK)

        assert gone == await get(store, found.task_id)
        assert (gone.state, gone.reason) == (State.DEAD_LETTER, Reason.UNKNOWN_TASK)
        assert gone.error is not None
        assert gone.finished_at == clock.now
        assert (await kinds(store, gone.id))[-1] == "unknown_task"
        numbers = await store.stats()
        assert (numbers.states[State.DEAD_LETTER], numbers.states[State.CANCELLED]) == (1, 0)
        assert numbers.last_minute[State.DEAD_LETTER] == 1
        assert await claim_ids(store, worker) == [behind]
        assert await submit(store, unique_key="once") != gone.id

    async def test_a_running_task_is_not_given_up(self, store: Store, worker: WorkerId) -> None:
        await save(store, unknown(await started(store, worker)))
        await claim_one(store, worker, capabilities=KNOWN)

        waiting = TaskFilter(requires=knows(NAME), states=frozenset(CANCELLABLE_AT_ONCE))

        assert list(await store.cancel(waiting, limit=MANY, reason=Reason.UNKNOWN_TASK)) == []

    async def test_replayed_it_is_for_those_who_know_it(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)
        await save(store, unknown(found))
        await store.cancel(only(found.task_id), limit=1, reason=Reason.UNKNOWN_TASK)

        await store.requeue(only(found.task_id), limit=1, head_starts=HEAD_STARTS)

        assert await claim(store, worker) == []
        again = await claim_one(store, worker, capabilities=KNOWN)
        assert (again.task_id, again.cause) == (found.task_id, Cause.OPERATOR)
