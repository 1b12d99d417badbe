"""Gates with a capacity: limits, shares, breakers and rates, alone and several for one task."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from holdfast.core.gate import UNBOUNDED, Capacity, Gate, GateKind, GateState
from holdfast.core.lifecycle import UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes
from holdfast.core.task import Priority, State, TaskId, WorkerId
from holdfast.core.why import explain
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import HEAD_STARTS, failure, new_task, new_tasks, success
from holdfast.testing.suites.base import (
    MANY,
    Settle,
    StoreSuite,
    add,
    claim,
    claim_ids,
    enlist,
    only,
    save,
    started,
    state,
    submit,
)
from holdfast.testing.suites.races import at_once
from holdfast.testing.suites.unlocking import whatever_lets_go

MINUTE = 60.0


def limit(key: str, capacity: int) -> Gate:
    return Gate(GateKind.LIMIT, key, capacity)


def rate(key: str, capacity: int, period: float = MINUTE) -> Gate:
    return Gate(GateKind.RATE, key, capacity, period)


def breaker(key: str, capacity: int = UNBOUNDED) -> Gate:
    return Gate(GateKind.BREAKER, key, capacity)


class GateSuite(StoreSuite):
    """No more pass than there is room for, by rank, and whoever leaves lets the next pass."""

    @pytest.mark.parametrize("kind", [GateKind.LIMIT, GateKind.SHARE, GateKind.BREAKER])
    async def test_as_many_are_ready_as_there_is_room_for(
        self, store: Store, kind: GateKind
    ) -> None:
        answers = await add(store, *new_tasks(4, gates=(Gate(kind, "acme", 2),)))

        found = [answer.state for answer in answers]
        assert found == [State.QUEUED, State.QUEUED, State.BLOCKED, State.BLOCKED]

    async def test_one_that_leaves_lets_one_pass(self, store: Store, worker: WorkerId) -> None:
        tasks = [t.id for t in await _added(store, 4, gates=(limit("acme", 2),))]
        first, _ = await claim(store, worker)

        await save(store, success(first))

        assert await claim_ids(store, worker) == [tasks[2]]
        assert await claim_ids(store, worker) == []

    @whatever_lets_go
    async def test_room_is_made_by_whatever_ends_an_attempt(
        self, store: Store, worker: WorkerId, settle: Settle
    ) -> None:
        holder = await started(store, worker, gates=(limit("acme", 1),))
        waiting = await submit(store, gates=(limit("acme", 1),))

        await save(store, settle(holder))

        assert await claim_ids(store, worker) == [waiting]

    async def test_the_first_by_rank_passes_not_the_first_to_come(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder = await started(store, worker, gates=(limit("acme", 1),))
        low, high = [
            await submit(store, gates=(limit("acme", 1),), priority=priority)
            for priority in (Priority.LOW, Priority.HIGH)
        ]

        await save(store, success(holder))

        assert await claim_ids(store, worker) == [high]
        assert await state(store, low) is State.BLOCKED

    async def test_keys_and_kinds_do_not_hinder_each_other(
        self, store: Store, worker: WorkerId
    ) -> None:
        gates = [limit("a", 1), limit("b", 1), limit("A", 1), Gate(GateKind.SHARE, "a", 1)]
        tasks = [await submit(store, gates=(gate,)) for gate in gates]

        assert await claim_ids(store, worker) == tasks

    async def test_a_cancelled_holder_and_a_cancelled_waiter_leave(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder, waiter, last = [t.id for t in await _added(store, 3, gates=(limit("acme", 1),))]

        await store.cancel(only(waiter), limit=1)
        await store.cancel(only(holder), limit=1)

        assert await claim_ids(store, worker) == [last]

    async def test_a_waiter_that_expires_leaves(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        holder = await started(store, worker, gates=(limit("acme", 1),))
        expired = await submit(store, gates=(limit("acme", 1),), expires_in=5.0)
        last = await submit(store, gates=(limit("acme", 1),))
        clock.advance(6)

        await claim(store, worker)
        await save(store, success(holder))

        assert await state(store, expired) is State.CANCELLED
        assert await claim_ids(store, worker) == [last]

    async def test_a_delayed_task_stands_there_once_it_is_due(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        later = await submit(store, gates=(limit("acme", 1),), delay=5.0)
        holder = await started(store, worker, gates=(limit("acme", 1),))
        clock.advance(5)

        assert await claim_ids(store, worker) == []
        assert await state(store, later) is State.BLOCKED
        await save(store, success(holder))
        assert await claim_ids(store, worker) == [later]

    async def test_a_retry_stands_there_again(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        first = await started(store, worker, gates=(limit("acme", 1),))
        other = await submit(store, gates=(limit("acme", 1),))
        await save(store, failure(first, backoff=1.0))
        (second,) = await claim(store, worker)
        clock.advance(1)

        assert await claim_ids(store, worker) == []
        assert await state(store, first.task_id) is State.BLOCKED
        await save(store, success(second))
        assert second.task_id == other
        assert await claim_ids(store, worker) == [first.task_id]

    async def test_a_requeued_task_stands_there_again(self, store: Store, worker: WorkerId) -> None:
        first = await started(store, worker, gates=(limit("acme", 1),))
        await save(store, success(first))
        await started(store, worker, gates=(limit("acme", 1),))

        (again,) = await store.requeue(only(first.task_id), limit=1, head_starts=HEAD_STARTS)

        assert again.state is State.BLOCKED

    async def test_every_gate_of_a_task_must_be_passed(
        self, store: Store, worker: WorkerId
    ) -> None:
        both = (limit("a", 1), limit("b", 1))
        a = await started(store, worker, gates=both[:1])
        b = await started(store, worker, gates=both[1:])
        waiting = await submit(store, gates=both)

        await save(store, success(a))
        assert await claim_ids(store, worker) == []
        await save(store, success(b))

        assert await claim_ids(store, worker) == [waiting]

    async def test_a_task_holds_what_it_has_passed_while_it_waits_for_the_rest(
        self, store: Store, worker: WorkerId
    ) -> None:
        await started(store, worker, gates=(limit("b", 1),))
        waiting = await submit(store, gates=(limit("a", 1), limit("b", 1)))
        behind = await submit(store, gates=(limit("a", 1),))

        assert await state(store, behind) is State.BLOCKED
        await store.cancel(only(waiting), limit=1)
        assert await claim_ids(store, worker) == [behind]

    async def test_a_lock_and_a_limit_go_together(self, store: Store, worker: WorkerId) -> None:
        holder = await started(store, worker, gates=(limit("acme", 1),))
        first = await submit(store, lock="doc", gates=(limit("acme", 1),))
        second = await submit(store, lock="doc", gates=(limit("acme", 1),))

        await save(store, success(holder))
        (found,) = await claim(store, worker)
        assert (found.task_id, await state(store, second)) == (first, State.BLOCKED)
        assert found.fence is not None
        await save(store, success(found))

        assert await claim_ids(store, worker) == [second]

    async def test_a_holder_of_a_lock_that_waits_at_a_limit_is_not_overtaken(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder = await started(store, worker, gates=(limit("acme", 1),))
        first = await submit(store, lock="doc", gates=(limit("acme", 1),))
        urgent = await submit(store, lock="doc", priority=Priority.CRITICAL)

        assert await state(store, urgent) is State.BLOCKED
        await save(store, success(holder))
        (found,) = await claim(store, worker)
        await save(store, success(found))

        assert found.task_id == first
        assert await claim_ids(store, worker) == [urgent]

    async def test_an_operator_raises_a_limit_and_work_flows(
        self, store: Store, worker: WorkerId
    ) -> None:
        tasks = [t.id for t in await _added(store, 5, gates=(limit("acme", 1),))]

        await store.commit(Changes("c", capacities=[Capacity("limit:acme", 3)]))

        assert await claim_ids(store, worker) == tasks[:3]

    async def test_a_lowered_limit_holds_as_soon_as_enough_have_left(
        self, store: Store, worker: WorkerId
    ) -> None:
        tasks = [t.id for t in await _added(store, 5, gates=(limit("acme", 3),))]
        claims = await claim(store, worker)
        await store.commit(Changes("c", capacities=[Capacity("limit:acme", 1)]))

        for found in claims[:2]:
            await save(store, success(found))
            assert await claim_ids(store, worker) == []
        await save(store, success(claims[2]))

        assert await claim_ids(store, worker) == [tasks[3]]

    async def test_what_an_operator_set_stays_until_it_is_taken_back(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.commit(Changes("c", capacities=[Capacity("limit:acme", 1)]))
        tasks = [t.id for t in await _added(store, 3, gates=(limit("acme", 2),))]
        assert await claim_ids(store, worker) == tasks[:1]

        await store.commit(Changes("d", capacities=[Capacity("limit:acme", None)]))

        assert await claim_ids(store, worker) == tasks[1:2]

    async def test_the_newest_submit_says_how_many_may_pass(
        self, store: Store, worker: WorkerId
    ) -> None:
        tasks = [t.id for t in await _added(store, 3, gates=(limit("acme", 1),))]

        tasks.append(await submit(store, gates=(limit("acme", 3),)))

        assert await claim_ids(store, worker) == tasks[:3]

    async def test_a_breaker_of_no_capacity_lets_nobody_pass_and_one_of_one_a_probe(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.commit(Changes("c", capacities=[Capacity("breaker:mail", 0)]))
        tasks = [t.id for t in await _added(store, 3, gates=(breaker("mail"),))]
        assert await claim_ids(store, worker) == []

        await store.commit(Changes("d", capacities=[Capacity("breaker:mail", 1)]))
        assert await claim_ids(store, worker) == tasks[:1]
        await store.commit(Changes("e", capacities=[Capacity("breaker:mail", None)]))

        assert await claim_ids(store, worker) == tasks[1:]

    async def test_a_capacity_set_before_anybody_came_can_be_taken_back(
        self, store: Store, worker: WorkerId, clock: FakeClock
    ) -> None:
        names = ("limit:acme", "rate:mail")
        limited = [await submit(store, gates=(limit("acme", 2),), delay=9.0) for _ in range(2)]
        rated = [await submit(store, gates=(rate("mail", 1),), delay=9.0) for _ in range(2)]
        await store.commit(Changes("c", capacities=[Capacity(name, 1) for name in names]))
        clock.advance(9)
        assert await claim_ids(store, worker) == [limited[0], rated[0]]

        await store.commit(Changes("d", capacities=[Capacity(name, None) for name in names]))

        assert await state(store, limited[1]) is State.QUEUED  # the tasks say two
        assert await state(store, rated[1]) is State.BLOCKED  # the tasks say one a minute

    async def test_a_rate_lets_so_many_start_per_period(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        tasks = [t.id for t in await _added(store, 5, gates=(rate("acme", 2),))]

        assert await claim_ids(store, worker) == tasks[:2]
        clock.advance(MINUTE - 1)
        assert await claim_ids(store, worker) == []
        clock.advance(1)
        assert await claim_ids(store, worker) == tasks[2:4]

    async def test_a_claim_says_when_a_rate_lets_the_next_start(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await _added(store, 2, gates=(rate("acme", 1),))
        await claim(store, worker)
        clock.advance(20)

        found = await store.claim(worker, queues=None, capabilities=frozenset(), limit=1)

        assert found.next_due == pytest.approx(MINUTE - 20, abs=0.01)

    async def test_a_backlog_that_nobody_claimed_does_not_burst(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await _added(store, 10, gates=(rate("acme", 2),))
        clock.advance(100 * MINUTE)

        assert len(await claim(store, worker)) == 2
        assert len(await claim(store, worker)) == 0

    async def test_an_ended_attempt_gives_no_start_back(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        first, second = [t.id for t in await _added(store, 2, gates=(rate("acme", 1),))]
        (found,) = await claim(store, worker)
        assert found.task_id == first

        await save(store, success(found))

        assert await claim_ids(store, worker) == []
        clock.advance(MINUTE)
        assert await claim_ids(store, worker) == [second]

    async def test_a_cancelled_task_that_had_not_started_gives_its_place_back(
        self, store: Store, worker: WorkerId
    ) -> None:
        first, second = [t.id for t in await _added(store, 2, gates=(rate("acme", 1),))]

        await store.cancel(only(first), limit=1)

        assert await claim_ids(store, worker) == [second]

    async def test_there_are_never_more_starts_in_a_period_however_large_the_rate(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await _added(store, 500, gates=(rate("acme", 100, 10.0),))
        starts: list[float] = []

        for second in range(40):
            starts += [float(second)] * len(await claim(store, worker, limit=17))
            clock.advance(1)

        windows = [sum(1 for at in starts if first <= at < first + 10) for first in range(31)]
        assert max(windows) <= 100
        assert len(starts) > 250  # and it does not starve either

    async def test_gates_that_nobody_uses_leave_nothing_behind(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        for gate in (limit("a", 1), Gate(GateKind.SHARE, "b", 1), breaker("c"), rate("d", 1)):
            found = await started(store, worker, gates=(gate,))
            await save(store, success(found))
        await started(store, worker, lock="doc")
        clock.advance(MINUTE)
        await claim(store, worker)

        assert [gate.name for gate in await store.gates(limit=MANY)] == ["lock:doc"]

    async def test_gates_are_listed_with_what_people_ask_about_them(
        self, store: Store, worker: WorkerId
    ) -> None:
        await _added(store, 3, gates=(limit("acme", 1),))
        holder = await submit(store, lock="doc")
        await submit(store, lock="doc")

        found = await store.gates(limit=MANY)

        assert found == [
            GateState(name="limit:acme", capacity=1, held=1, parked=2),
            GateState(name="lock:doc", capacity=1, held=1, parked=1, holder=holder),
        ]
        assert await store.gates(limit=1) == found[:1]
        assert await store.gates(limit=1, after="limit:acme") == found[1:]
        assert await store.gates(names=["lock:doc", "limit:x"], limit=MANY) == found[1:]

    async def test_why_names_the_gate_and_the_place_before_it(
        self, store: Store, worker: WorkerId
    ) -> None:
        await _added(store, 3, gates=(limit("acme", 1),))
        last = await submit(store, gates=(limit("acme", 1),))

        standing = await store.standing(last)

        assert standing is not None
        assert (standing.ahead, standing.ahead_at_gate) == (None, 2)
        code, text = explain(standing).reasons[0]
        assert code == "limited"
        assert "'acme'" in text
        assert "1 of 1" in text
        assert "2 before it" in text

    async def test_never_more_than_the_limit_run_however_workers_race(self, store: Store) -> None:
        batch = new_tasks(self.some(60), gates=(limit("acme", 3),))
        await add(store, *batch)
        workers = [await enlist(store) for _ in range(4)]
        running: Counter[str] = Counter()
        most, done = 0, list[TaskId]()

        async def work(index: int) -> None:
            nonlocal most
            while await store.count(TaskFilter(states=UNFINISHED), limit=1):
                for found in await claim(store, workers[index], limit=2):
                    running["acme"] += 1
                    most = max(most, running["acme"])
                    await asyncio.sleep(0)
                    running["acme"] -= 1
                    await save(store, success(found))
                    done.append(found.task_id)
                await asyncio.sleep(0)

        await at_once(4, work)

        assert most <= 3
        assert sorted(done) == [t.id for t in batch]

    async def test_tasks_of_many_gates_never_wait_for_each_other(self, store: Store) -> None:
        keys = "abcd"
        batch = [
            new_task(
                lock=keys[n % 3] if n % 2 else None,
                gates=(limit(keys[n % 4], 1), limit(keys[(n + 1 + n % 3) % 4], 2)),
            )
            for n in range(self.some(60))
        ]
        workers = [await enlist(store) for _ in range(3)]
        done: list[TaskId] = []
        deadline = time.monotonic() + 120

        async def act(index: int) -> None:
            if index == 3:
                for new in batch:
                    await add(store, new)
                    await asyncio.sleep(0)
                return
            while len(done) < len(batch) and time.monotonic() < deadline:
                claims = await claim(store, workers[index], limit=3)
                await asyncio.sleep(0)
                await save(store, *[success(found) for found in claims])
                done.extend(found.task_id for found in claims)

        await at_once(4, act)

        assert sorted(done) == [t.id for t in batch]
        assert await store.gates(limit=MANY) == []


async def _added(store: Store, number: int, **given: Any) -> list[Any]:
    batch = new_tasks(number, **given)
    await add(store, *batch)
    return batch
