"""Gates on MongoDB: what transactions of handlers and callers, races and deaths do to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from tests.integration.mongo.watching import Watch, name_of

from holdfast.core.attempt import Claim
from holdfast.core.gate import Gate, GateKind, latch_of
from holdfast.core.query import TaskFilter
from holdfast.core.task import NewTask, State, TaskId, WorkerId
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import HEAD_STARTS, WINDOW, new_task, new_tasks, success
from holdfast.testing.suites.base import claim, claim_ids, enlist, only, state

LIMIT = (Gate(GateKind.LIMIT, "acme", 1),)
RATE = (Gate(GateKind.RATE, "mail", 100, 60.0),)


def behind(task_id: TaskId) -> tuple[Gate, ...]:
    return (Gate(GateKind.LATCH, task_id),)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch.install(monkeypatch)


@pytest.fixture
async def store(fresh_mongo: str, clock: FakeClock, watch: Watch) -> AsyncIterator[MongoStore]:
    async with MongoStore(fresh_mongo, clock=clock) as store:
        yield store
        assert list(await store.check()) == []


@pytest.fixture
async def worker(store: MongoStore) -> WorkerId:
    return await enlist(store)


@pytest.fixture
def caller(fresh_mongo: str) -> Iterator[MongoClient[dict[str, Any]]]:
    client: MongoClient[dict[str, Any]] = MongoClient(fresh_mongo)
    with client:
        yield client


async def add(store: MongoStore, *tasks: NewTask) -> TaskId:
    return (await store.add(tasks, idempotency_window=WINDOW))[0].task_id


async def started(store: MongoStore, worker: WorkerId, **given: Any) -> Claim:
    await add(store, new_task(**given))
    (found,) = await claim(store, worker)
    return found


async def complete(store: MongoStore, found: Claim) -> None:
    async with store.transaction(found) as inside:
        await inside.complete(success(found))


async def test_an_end_inside_a_handlers_transaction_lets_the_next_pass(
    store: MongoStore, worker: WorkerId
) -> None:
    told: list[dict[str, int]] = []
    store.passed_on = lambda queues: told.append(dict(queues))
    holder = await started(store, worker, gates=LIMIT, counts=("latch:x",))
    waiting = await add(store, new_task(gates=LIMIT))
    after = await add(store, new_task(gates=behind(holder.task_id), queue="b"))

    await complete(store, holder)

    assert told == [{"default": 1, "b": 1}]
    assert set(await claim_ids(store, worker)) == {waiting, after}


async def test_whoever_comes_to_stand_behind_a_task_does_not_abort_its_handlers_transaction(
    store: MongoStore, clock: FakeClock, worker: WorkerId
) -> None:
    running = await started(store, worker)

    async with store.transaction(running) as inside:
        its_own = [new_task(queue="other", delay=60.0)]  # its snapshot begins with its first work
        await store.add_within_async(inside.connection, its_own, idempotency_window=WINDOW)
        after = await add(store, new_task(gates=behind(running.task_id)))
        assert await claim_ids(store, worker) == []
        clock.advance(2)
        assert await claim_ids(store, worker) == []
        await inside.complete(success(running))
    clock.advance(2)

    assert await claim_ids(store, worker) == [after]


async def test_a_latch_that_was_looked_at_is_closed_when_its_task_is_requeued(
    store: MongoStore, clock: FakeClock, worker: WorkerId
) -> None:
    running = await started(store, worker)
    async with store.transaction(running) as inside:
        await add(store, new_task(gates=behind(running.task_id), queue="other"))
        await inside.complete(success(running))
    clock.advance(2)
    await claim(store, worker)

    await store.requeue(only(running.task_id), limit=1, head_starts=HEAD_STARTS)
    late = await add(store, new_task(gates=behind(running.task_id)))

    assert await state(store, late) is State.BLOCKED
    (again,) = await claim(store, worker)
    await store.save([success(again)])
    assert await claim_ids(store, worker) == [late]


async def test_a_submit_inside_a_callers_transaction_stands_there_with_the_next_claim(
    store: MongoStore, caller: MongoClient[dict[str, Any]], worker: WorkerId
) -> None:
    tasks = new_tasks(3, gates=LIMIT)
    await add(store, *tasks)
    wider = (Gate(GateKind.LIMIT, "acme", 3),)

    with caller.start_session() as session, session.start_transaction():
        more = new_task(gates=wider)
        store.add_within(session, [more], idempotency_window=WINDOW)

    assert await claim_ids(store, worker) == [task.id for task in tasks]
    assert await state(store, more.id) is State.BLOCKED


async def test_whoever_comes_while_a_task_ends_is_never_forgotten(
    store: MongoStore, worker: WorkerId
) -> None:
    firsts = new_tasks(8)
    await add(store, *firsts)
    claims = await claim(store, worker)
    rest = [new_task(gates=behind(found.task_id)) for found in claims]

    acts = [store.save([success(found)]) for found in claims]
    acts += [add(store, task) for task in rest]  # type: ignore[misc]
    await asyncio.gather(*acts)

    assert sorted(await claim_ids(store, worker)) == [task.id for task in rest]


async def test_a_task_that_nobody_stands_behind_ends_as_cheaply_as_ever(
    store: MongoStore, worker: WorkerId, watch: Watch
) -> None:
    plain, awaited = await add(store, new_task()), await add(store, new_task())
    await add(store, new_task(gates=behind(awaited)))
    claims = {found.task_id: found for found in await claim(store, worker)}

    with watch.over() as said:
        await store.save([success(claims[plain])])

    assert [name_of(command) for command in said] == ["aggregate", "update"]


async def test_a_store_without_rates_asks_for_none(
    store: MongoStore, clock: FakeClock, worker: WorkerId, watch: Watch
) -> None:
    await started(store, worker, gates=LIMIT)
    with watch.over() as said:
        await claim(store, worker)
    assert not [command for command in said if "holdfast.gates" in command.values()]

    await started(store, worker, gates=RATE)
    with watch.over() as said:
        found = await store.claim(worker, queues=None, capabilities=frozenset(), limit=1)

    assert len([command for command in said if "holdfast.gates" in command.values()]) == 2
    assert found.next_due == 60.0


async def test_a_hundred_rated_tasks_are_started_with_a_few_commands(
    store: MongoStore, worker: WorkerId, watch: Watch
) -> None:
    await add(store, *new_tasks(100, gates=RATE))

    with watch.over() as said:
        claims = await claim(store, worker)
        await store.save([success(found) for found in claims])

    assert len(claims) == 100
    assert len(said) <= 20, [name_of(command) for command in said]


async def test_an_awaited_task_that_is_forgotten_leaves_its_latch_to_prune(
    store: MongoStore, clock: FakeClock, worker: WorkerId
) -> None:
    first = await started(store, worker)
    await add(store, new_task(gates=behind(first.task_id)))
    await store.save([success(first)])
    await store.save([success(found) for found in await claim(store, worker)])
    assert [gate.name for gate in await store.gates(limit=9)] == [latch_of(first.task_id)]
    await store.discard(TaskFilter(), limit=9)
    clock.advance(100)

    await store.prune(retention=50.0, dead_letter_retention=50.0, limit=9)

    assert await store.gates(limit=9) == []
