"""What operators do with limits, rates, shares and breakers: look, set, and take back.

A capacity that was set is kept by the store with the gate, and wins over what tasks say until it is
taken back. What nobody uses and nobody has set is not kept, so it is not listed either.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final
from uuid import uuid4

from holdfast.core.breaker import BREAKER, BreakerRecord, BreakerRule, BreakerState
from holdfast.core.gate import Capacity, GateKind, GateState, key_of, kind_of
from holdfast.core.limit_state import LimitDetails, LimitPage, LimitState, limit_state
from holdfast.core.query import Order, TaskFilter
from holdfast.core.record import Changes
from holdfast.core.scope import KINDS, QUEUE, TASK, Scope
from holdfast.core.task import State, Task, TaskId
from holdfast.flow import breaker_records
from holdfast.ports.records import one_record
from holdfast.ports.store import Store

SHOWN: Final = 10
"""How many of those who hold and who wait are named."""
PAGE: Final = 200
MOST_LOOKED_AT: Final = 2000
"""Tasks that are looked at to find those: there is no index of who stands where."""


async def list_limits(
    store: Store,
    *,
    after: str,
    limit: int,
    kinds: Sequence[GateKind] = KINDS,
    containing: str = "",
) -> LimitPage:
    """Those in use or set, by name and after that one; latches are none. With `containing`, those
    with that in their names, in any case: a page may then have fewer, and still not be the last.
    """
    found: list[GateState] = []
    wanted, looked_at, last, more = containing.casefold(), 0, "", None
    async for gate in _of_kinds(store, kinds, after, at_once=min(limit + 1, PAGE)):
        if len(found) == limit or looked_at == MOST_LOOKED_AT:
            more = last
            break
        looked_at, last = looked_at + 1, gate.name
        if wanted in gate.name.casefold():
            found.append(gate)
    return LimitPage(limits=tuple([await _state(store, gate) for gate in found]), next=more)


async def of_queue(store: Store, queue: str, *, limit: int) -> LimitPage:
    """Those of a queue, whatever the task: `limit` of each kind with keys of their own."""
    found: list[GateState] = []
    more = None
    for kind in KINDS:
        own = f"{kind}:{Scope(QUEUE, queue)}"
        found += await store.gates(names=[own], limit=1)
        page = await store.gates(after=f"{own}[", limit=limit + 1)
        keyed = [gate for gate in page if gate.name.startswith(f"{own}[")]
        found += keyed[:limit]
        more = found[-1].name if len(keyed) > limit else more
    return LimitPage(limits=tuple([await _state(store, gate) for gate in found]), next=more)


async def find_limit(store: Store, name: str) -> LimitState | None:
    """One of them; None if nobody uses it and nobody has set it."""
    gates = await store.gates(names=[name], limit=1)
    return await _state(store, gates[0]) if gates else None


async def details(store: Store, limit: LimitState) -> LimitDetails:
    """Who holds it and who waits, as far as a look at some thousand tasks shows."""
    holders: list[TaskId] = []
    waiters: list[TaskId] = []
    if limit.kind is not GateKind.RATE:
        holders += await _first(store, limit.name, State.RUNNING, SHOWN)
    if len(holders) < min(SHOWN, limit.held):
        holders += await _first(store, limit.name, State.QUEUED, SHOWN - len(holders))
    if limit.waiting:
        waiters += await _first(store, limit.name, State.BLOCKED, SHOWN)
    return LimitDetails(limit=limit, holders=tuple(holders), waiters=tuple(waiters))


async def set_capacity(store: Store, name: str, capacity: int | None) -> bool:
    """So many may pass from now on; None: what tasks say. False if that was so already."""
    gates = await store.gates(names=[name], limit=1)
    pinned = gates[0].capacity if gates and gates[0].pinned else None
    if pinned == capacity:
        return False
    await store.commit(Changes(uuid4().hex, capacities=[Capacity(name, capacity)]))
    return True


async def force_breaker(store: Store, name: str, state: BreakerState | None) -> bool:
    """Keep a breaker open or closed from now on; None: what happens decides again. False if that
    was so already.
    """
    key, changed = key_of(name), False

    def make(record: BreakerRecord) -> BreakerRecord:
        nonlocal changed
        forced = state is not None
        wanted = replace(
            record, state=state or BreakerState.CLOSED, forced=forced, counts={}, probe=None
        )
        changed = (wanted.state, wanted.forced) != (record.state, record.forced)
        return wanted if changed else record

    found = await one_record(store, BREAKER, key)
    await breaker_records.change(store, key, make, rule=BreakerRule(), found=found)
    return changed


async def with_due(store: Store, gate: GateState) -> GateState:
    """A breaker's gate, with when one task may try."""
    record = await one_record(store, BREAKER, key_of(gate.name))
    return gate if record is None else replace(gate, opens_at=record.due_at)


async def _of_kinds(
    store: Store, kinds: Sequence[GateKind], after: str, *, at_once: int
) -> AsyncIterator[GateState]:
    """The gates of these kinds, which are in the order of their names."""
    for kind in kinds:
        first = f"{kind}:"
        if after > first and not after.startswith(first):
            continue
        begin: str | None = max(after, first)
        while begin is not None:
            page = await store.gates(after=begin, limit=at_once)
            same = [gate for gate in page if gate.name.startswith(first)]
            for gate in same:
                yield gate
            begin = page[-1].name if len(same) == at_once else None


async def _state(store: Store, gate: GateState) -> LimitState:
    if gate.kind is not GateKind.BREAKER or not gate.pinned:
        return limit_state(gate)
    record = await one_record(store, BREAKER, key_of(gate.name))
    if record is None:
        return limit_state(gate)
    return limit_state(gate, BreakerRecord.load(record.document), record.due_at)


async def _first(store: Store, name: str, state: State, most: int) -> list[TaskId]:
    """The oldest of those in this state who hold it; of blocked ones, who wait for it."""
    found: list[TaskId] = []
    async for task in _with_gate(store, name, state):
        if len(found) >= most:
            break
        if state is not State.BLOCKED or await _waits_for(store, task, name):
            found.append(task.id)
    return found


async def _with_gate(store: Store, name: str, state: State) -> AsyncIterator[Task]:
    which = _who_may_have(name, state)
    now = await store.now()
    after: str | None = None
    for _ in range(MOST_LOOKED_AT // PAGE):
        page = await store.list(which, limit=PAGE, after=after, order=Order.OLDEST)
        for task in page.tasks:
            if task.run_at <= now and _names(task, name):
                yield task
        after = page.next
        if after is None:
            return


def _names(task: Task, name: str) -> bool:
    """Whether a task has this gate. Its lock stands beside the others."""
    if kind_of(name) is GateKind.LOCK:
        return task.lock == key_of(name)
    return any(gate.name == name for gate in task.gates)


def _who_may_have(name: str, state: State) -> TaskFilter:
    """As few as a store can find that may have this gate."""
    if kind_of(name) is GateKind.LOCK:
        return TaskFilter(states=frozenset({state}), lock=key_of(name))
    scope = Scope.parse(key_of(name))
    return TaskFilter(
        states=frozenset({state}),
        name=scope.name if scope.of == TASK else None,
        queue=scope.name if scope.of == QUEUE else None,
    )


async def _waits_for(store: Store, task: Task, name: str) -> bool:
    standing = await store.standing(task.id)
    return standing is not None and standing.gate is not None and standing.gate.name == name
