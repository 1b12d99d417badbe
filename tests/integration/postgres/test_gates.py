"""Gates on PostgreSQL: races that one process cannot have, what `check` finds, transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from holdfast.core.gate import Gate, GateKind, to_pass
from holdfast.core.task import State, TaskId
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.factories import WINDOW, new_task, new_tasks, success
from holdfast.testing.suites.base import (
    MANY,
    add,
    claim,
    claim_one,
    enlist,
    only,
    save,
    state,
    submit,
)

ROUNDS = 25


def limit(key: str, capacity: int = 1) -> Gate:
    return Gate(GateKind.LIMIT, key, capacity)


def behind(task: TaskId) -> tuple[Gate, ...]:
    return (Gate(GateKind.LATCH, task),)


@pytest.fixture
async def store(fresh_database: str) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(fresh_database) as store:
        yield store


@pytest.fixture
async def db(fresh_database: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(fresh_database)
    yield connection
    await connection.close()


async def test_whoever_comes_while_a_task_ends_is_not_left_behind(store: PostgresStore) -> None:
    worker = await enlist(store)
    await submit(store)
    for _ in range(ROUNDS):
        found = await claim_one(store, worker)

        second, *_ = await asyncio.gather(
            submit(store, gates=behind(found.task_id)), save(store, success(found))
        )

        assert await state(store, second) is State.QUEUED
    assert list(await store.check()) == []


async def test_whoever_comes_while_a_task_moves_on_finds_it_where_it_goes(
    store: PostgresStore,
) -> None:
    worker = await enlist(store)
    for number in range(ROUNDS):
        first = await submit(store)
        move: Any = store.cancel(only(first), limit=1) if number % 2 else claim(store, worker)

        second, moved = await asyncio.gather(submit(store, gates=behind(first)), move)
        if not number % 2:
            assert await state(store, second) is State.BLOCKED
            found = [*moved, *await claim(store, worker)]  # one that is locked is passed over
            await save(store, *map(success, found))

        assert await state(store, second) is State.QUEUED
        await store.cancel(only(second), limit=1)
    assert list(await store.check()) == []


async def test_claims_of_many_processes_start_no_more_than_a_rate_allows(
    fresh_database: str, store: PostgresStore
) -> None:
    await add(store, *new_tasks(60, gates=(Gate(GateKind.RATE, "slow", 20, 600.0),)))

    async with AsyncExitStack() as stores:
        others = [await stores.enter_async_context(PostgresStore(fresh_database)) for _ in range(4)]
        workers = [await enlist(other) for other in others]

        async def claims(number: int) -> int:
            return sum(
                [len(await claim(others[number], workers[number], limit=3)) for _ in range(12)]
            )

        started = await asyncio.gather(*map(claims, range(4)))

    assert sum(started) == 20
    assert list(await store.check()) == []


async def test_saves_and_submits_of_tasks_with_several_gates_of_a_kind_do_not_lock_each_other_out(
    fresh_database: str, store: PostgresStore
) -> None:
    """In batches that name many gates, in all orders."""
    keys = "abcdefgh"
    batch = [
        new_task(gates=(limit(keys[n % 8], 2), limit(keys[(n * 5 + 3) % 8], 2))) for n in range(200)
    ]
    done: list[TaskId] = []

    async with AsyncExitStack() as stores:
        others = [await stores.enter_async_context(PostgresStore(fresh_database)) for _ in range(3)]
        workers = [await enlist(other) for other in others]

        async def work(number: int) -> None:
            while len(done) < len(batch):
                found = await claim(others[number], workers[number], limit=8)
                await save(others[number], *map(success, found))
                done.extend(one.task_id for one in found)

        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(work(number))
            for start in range(0, len(batch), 20):
                await add(store, *batch[start : start + 20])

    assert sorted(done) == [new.id for new in batch]
    assert await store.gates(limit=MANY) == []
    assert list(await store.check()) == []


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_transaction_that_completes_a_task_lets_the_next_pass_and_tells_of_it(
    store: PostgresStore, *, blocking: bool
) -> None:
    told: list[dict[str, int]] = []
    store.passed_on = lambda queues: told.append(dict(queues))
    first = new_task(gates=(limit("acme"),), counts=("latch:g",))
    await add(store, first, new_task(gates=(limit("acme"), *behind(first.id)), queue="b"))
    found = await claim_one(store, await enlist(store))

    async with store.transaction(found, blocking=blocking) as inside:
        await inside.complete(success(found))

    assert told == [{"b": 1}]
    assert list(await store.check()) == []


async def test_what_was_submitted_in_a_transaction_stands_before_its_gates_at_the_next_claim(
    store: PostgresStore, db: Connection
) -> None:
    worker = await enlist(store)
    await submit(store, gates=(limit("acme"),))
    first = await claim_one(store, worker)
    batch = [
        new_task(gates=(limit("acme", 2), *behind(first.task_id)), lock="doc"),
        new_task(gates=(limit("acme", 2),), counts=("latch:g",)),
    ]

    async with db.transaction():
        await store.add_within_async(db, batch, idempotency_window=WINDOW)

    assert (await claim_one(store, worker)).task_id == batch[1].id
    kept = [await store.get(new.id) for new in batch]
    assert [(task.gates, task.counts) for task in kept if task] == [
        (to_pass(None, new.gates), new.counts) for new in batch
    ]
    await save(store, success(first))
    assert (await claim_one(store, worker)).task_id == batch[0].id
    assert list(await store.check()) == []


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("UPDATE holdfast.gate SET held = 2 WHERE name = 'limit:acme'", "says that 2 hold it"),
        ("UPDATE holdfast.gate SET held = 0 WHERE name = 'limit:acme'", "says that 0 hold it"),
        ("DELETE FROM holdfast.gate WHERE name = 'limit:acme'", "says that 0 hold it"),
        ("UPDATE holdfast.gate SET capacity = 2 WHERE name = 'limit:acme'", "it has room"),
        ("UPDATE holdfast.gate SET holder = gen_random_uuid() WHERE holder IS NOT NULL", "hold it"),
        ("UPDATE holdfast.gate SET opened_at = 1 WHERE name LIKE 'latch:%'", "it has room"),
        ("UPDATE holdfast.ready SET flags = flags & ~64", "will not open it"),
        ("INSERT INTO holdfast.gate (name) VALUES ('share:x')", "nobody holds it"),
    ],
)
async def test_check_finds_gates_that_are_not_as_they_should_be(
    store: PostgresStore, db: Connection, damage: str, sentence: str
) -> None:
    first = await submit(store, gates=(limit("acme"),), lock="doc")
    await submit(store, gates=(limit("acme"),))
    await submit(store, gates=behind(first))
    assert list(await store.check()) == []

    await db.execute(damage)

    assert any(sentence in found for found in await store.check()), await store.check()
