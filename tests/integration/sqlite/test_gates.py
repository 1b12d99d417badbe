"""Gates, where this store reads and writes them in its own way."""

from __future__ import annotations

import pytest

from holdfast.core.gate import Count, Gate, GateKind, latch_of
from holdfast.core.record import Changes
from holdfast.core.task import Priority, State, WorkerId
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing.factories import new_task, new_tasks, success
from holdfast.testing.suites.base import (
    MANY,
    add,
    claim,
    claim_ids,
    claim_one,
    save,
    started,
    state,
    submit,
)

LIMIT = Gate(GateKind.LIMIT, "acme", 1)


async def test_a_holder_is_overtaken_by_one_that_goes_on_to_another_gate(
    store: SQLiteStore, worker: WorkerId
) -> None:
    """One lets go of the lock and another takes it while it is still blocked: in this order."""
    await started(store, worker, gates=(LIMIT,))
    first = await submit(store, lock="doc")

    urgent = await submit(store, lock="doc", gates=(LIMIT,), priority=Priority.CRITICAL)

    assert [await state(store, each) for each in (first, urgent)] == [State.BLOCKED] * 2
    assert [gate.holder for gate in await store.gates(names=["lock:doc"], limit=1)] == [urgent]
    assert list(await store.check()) == []


async def test_the_claim_that_starts_a_rate_says_when_to_look_again(
    store: SQLiteStore, worker: WorkerId
) -> None:
    await add(store, *new_tasks(2, gates=(Gate(GateKind.RATE, "acme", 1, 60.0),)))

    found = await store.claim(worker, queues=None, capabilities=frozenset(), limit=1)

    assert found.next_due == pytest.approx(60.0, abs=0.01)


async def test_a_task_that_is_not_due_yet_makes_no_gate(store: SQLiteStore) -> None:
    first = await submit(store)

    await submit(store, delay=60.0, gates=(Gate(GateKind.LATCH, first), LIMIT))

    assert await store.gates(limit=MANY) == []


async def test_the_newest_of_a_batch_says_how_many_may_pass(
    store: SQLiteStore, worker: WorkerId
) -> None:
    batch = [new_task(gates=(LIMIT._replace(capacity=number),)) for number in (1, 1, 2)]

    await add(store, *batch)

    assert await claim_ids(store, worker) == [new.id for new in batch[:2]]


async def test_a_latch_that_is_made_in_the_name_of_a_task_counts_its_end(
    store: SQLiteStore, worker: WorkerId
) -> None:
    first = new_task()
    behind = new_task(gates=(Gate(GateKind.LATCH, first.id),))
    await store.commit(Changes("c", [first, behind], counts=[Count(latch_of(first.id), 1)]))

    await save(store, success(await claim_one(store, worker)))

    assert await claim_ids(store, worker) == [behind.id]


async def test_gated_successes_are_saved_beside_plain_ones_and_late_ones(
    store: SQLiteStore, worker: WorkerId
) -> None:
    """Both quick ways, and the careful one because a key spoils them, in one batch."""
    await add(
        store,
        *new_tasks(3),
        *new_tasks(4, gates=(LIMIT._replace(capacity=2),)),
        new_task(gates=(LIMIT._replace(capacity=2),), unique_key="u"),
        *new_tasks(2, lock="doc"),
    )
    done = 0

    while claims := await claim(store, worker):
        assert await store.save([success(found) for found in claims]) == []
        done += len(claims)

    assert done == 10
    assert await store.gates(limit=MANY) == []
    assert list(await store.check()) == []


async def test_a_transaction_lets_the_next_pass_a_limit_and_tells_of_it(
    store: SQLiteStore, worker: WorkerId
) -> None:
    found = await started(store, worker, gates=(LIMIT,))
    waiting = await submit(store, gates=(LIMIT,), queue="b")
    told: list[dict[str, int]] = []
    store.passed_on = lambda queues: told.append(dict(queues))

    async with store.transaction(found) as inside:
        await inside.complete(success(found))

    assert told == [{"b": 1}]
    assert await claim_ids(store, worker) == [waiting]
