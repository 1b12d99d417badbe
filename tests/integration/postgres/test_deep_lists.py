"""However many tasks wait, and wherever they are looked for, a list is the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import asyncpg
import pytest

from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import Priority, State, TaskId
from holdfast.stores.postgres import filters, listing
from holdfast.stores.postgres.queries import queries
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.factories import failure, new_task, new_tasks, stop, success
from holdfast.testing.suites.base import add, claim, ended, enlist, save

FILTERS = [
    TaskFilter(states=frozenset({state})) for state in State if not state.startswith("comp")
] + [
    TaskFilter(states=frozenset({State.QUEUED, State.RETRYING, State.BLOCKED, State.RUNNING})),
    TaskFilter(states=frozenset({State.QUEUED}), queue="mail"),
    TaskFilter(states=frozenset({State.QUEUED}), priority=Priority.HIGH),
    TaskFilter(states=frozenset({State.QUEUED}), queue="mail", priority=Priority.LOW),
    TaskFilter(states=frozenset({State.QUEUED}), name="other"),
    TaskFilter(states=frozenset({State.QUEUED}), name_prefix="de", queue="default"),
    TaskFilter(states=frozenset({State.QUEUED}), tag="red"),
    TaskFilter(states=frozenset({State.QUEUED, State.COMPLETED})),
]


@pytest.fixture
async def store(fresh_database: str) -> AsyncIterator[PostgresStore]:
    """Tasks in every state, ended ones before and after the others."""
    async with PostgresStore(fresh_database) as store:
        me = await enlist(store)
        for end in (success, stop, failure) * 2:
            await ended(store, me, end)
        await add(store, *new_tasks(3, queue="running", lock="k"))
        assert len(await claim(store, me, queues=["running"])) == 1
        for n in range(12):
            await add(
                store,
                new_task(queue=("default", "mail")[n % 2], name=("demo", "other")[n % 3 == 0]),
                new_task(priority=Priority.HIGH, tags=("red",) if n % 4 == 0 else ()),
                new_task(delay=60.0),
            )
        await add(store, *new_tasks(5, queue="last"))
        await save(store, *map(success, await claim(store, me, queues=["last"])))
        yield store


async def _pages(store: PostgresStore, where: TaskFilter, order: Order) -> list[TaskId]:
    found: list[TaskId] = []
    cursor = None
    while True:
        page = await store.list(where, limit=4, after=cursor, order=order)
        found += [task.id for task in page.tasks]
        cursor = page.next
        if cursor is None:
            return found


@pytest.mark.parametrize("picked", [1, 6, 1000])
async def test_a_deep_list_is_the_same_as_a_short_one(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, picked: int
) -> None:
    short = [await _pages(store, where, order=Order.NEWEST) for where in FILTERS]
    monkeypatch.setattr(filters, "_FEW", 0)
    monkeypatch.setattr(listing, "_PICKED", picked)

    newest = [await _pages(store, where, order=Order.NEWEST) for where in FILTERS]
    oldest = [await _pages(store, where, order=Order.OLDEST) for where in FILTERS]

    assert newest == short
    assert oldest == [ids[::-1] for ids in short]
    assert sum(map(len, short)) > 150


async def test_children_are_found_by_their_parent_whatever_else_there_is(
    store: PostgresStore, fresh_database: str
) -> None:
    parent = new_task()
    children = new_tasks(40, parent_id=parent.id)
    await add(store, parent, *new_tasks(3000), *children, *new_tasks(3000))
    me = await enlist(store)
    await save(store, *map(failure, await claim(store, me, limit=7000)))

    await _expect_an_index_alone("parent_id", TaskFilter(parent_id=parent.id), fresh_database)

    retrying = TaskFilter(parent_id=parent.id, states=frozenset({State.RETRYING}))
    assert await _pages(store, retrying, Order.OLDEST) == [new.id for new in children]
    assert await store.count(retrying, limit=100) == 40


async def test_tasks_are_found_by_their_keys_whatever_else_there_is(
    store: PostgresStore, fresh_database: str
) -> None:
    keyed = [new_task(unique_key=f"order-{n}", idempotency_key=f"order-{n}") for n in range(100)]
    await add(store, *new_tasks(3000), *keyed, *new_tasks(3000))
    me = await enlist(store)
    await save(store, *map(failure, await claim(store, me, limit=7000)))
    by_unique_key, by_idempotency_key = (
        TaskFilter(unique_key="order-17"),
        TaskFilter(idempotency_key="order-17"),
    )

    await _expect_an_index_alone("unique_key", by_unique_key, fresh_database)
    await _expect_an_index_alone("idempotency_key", by_idempotency_key, fresh_database)

    assert await _pages(store, by_unique_key, Order.NEWEST) == [keyed[17].id]
    assert await _pages(store, by_idempotency_key, Order.OLDEST) == [keyed[17].id]
    assert await _pages(store, TaskFilter(unique_key="order-170"), Order.NEWEST) == []


async def test_the_few_tasks_of_an_owner_are_found_among_those_of_others(
    store: PostgresStore, fresh_database: str
) -> None:
    mine = new_tasks(3, owner="ann")
    await add(store, *new_tasks(3000, owner="bob"), *mine, *new_tasks(3000))
    db = await asyncpg.connect(fresh_database)
    await db.execute("ANALYZE holdfast.task")
    await db.close()

    await _expect_an_index_alone("owner", TaskFilter(owner="ann"), fresh_database, states=[None])

    found = await _pages(store, TaskFilter(owner="ann"), Order.NEWEST)
    assert found == [new.id for new in reversed(mine)]


async def _expect_an_index_alone(
    column: str,
    where: TaskFilter,
    url: str,
    states: Sequence[set[State] | None] = (
        {*State},
        {State.FAILED, State.CANCELLED},
        {State.QUEUED},
    ),
) -> None:
    """Whatever the states asked for, and however many other tasks there are."""
    sql = queries("holdfast")
    db = await asyncpg.connect(url)
    try:
        for each in states:
            among = None if each is None else frozenset(each)
            found = await filters.query(db, sql, replace(where, states=among))
            assert found is not None
            asked = filters.bind(found, sql["ids_of"], sql["newest_first"], limit=10)
            async with db.transaction():
                await db.execute(sql["pin"])
                steps = await db.fetch(f"EXPLAIN {asked.text}", *asked.arguments)
            text = "\n".join(step[0] for step in steps)
            assert f"Index Cond: ({column} = " in text, text
            assert "pkey" not in text, text
            assert "Seq Scan" not in text, text
    finally:
        await db.close()


async def test_a_deep_count_is_the_same_as_a_short_one(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = [len(await _pages(store, where, order=Order.NEWEST)) for where in FILTERS]

    assert [await store.count(where, limit=1000) for where in FILTERS] == short
    assert await store.count(FILTERS[0], limit=2) == 2
