"""How much a batch costs, counted where it cannot be argued with: in commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
from tests.integration.mongo.watching import Watch, name_of

from holdfast.core.attempt import Claim
from holdfast.core.task import State, WorkerId
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.factories import WINDOW, new_task, new_tasks, success, worker_info

FEW = 6


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch.install(monkeypatch)


@pytest.fixture
async def store(fresh_mongo: str, watch: Watch) -> AsyncIterator[MongoStore]:
    async with MongoStore(fresh_mongo) as store:
        yield store


@pytest.fixture
async def worker(store: MongoStore) -> WorkerId:
    info = worker_info()
    await store.register(info)
    return info.id


async def claim(store: MongoStore, worker: WorkerId, limit: int = 100) -> Sequence[Claim]:
    found = await store.claim(worker, queues=None, capabilities=frozenset(), limit=limit)
    return found.claims


@pytest.mark.parametrize("waiting", [100, 300])
async def test_a_hundred_tasks_take_six_commands_from_claim_to_history(
    store: MongoStore, worker: WorkerId, watch: Watch, waiting: int
) -> None:
    await store.add(new_tasks(waiting), idempotency_window=WINDOW)
    await claim(store, worker, limit=0)

    with watch.over() as said:
        claims = await claim(store, worker)
        refused = await store.save([success(one) for one in claims])

    assert (len(claims), list(refused)) == (100, [])
    assert len(said) <= FEW, [name_of(command) for command in said]
    history = await store.history(claims[-1].task_id)
    assert history is not None
    assert [attempt.ended for attempt in history.attempts] == ["completed"]


async def test_a_worker_that_works_on_needs_no_more_for_the_next_hundred(
    store: MongoStore, worker: WorkerId, watch: Watch
) -> None:
    await store.add(new_tasks(400), idempotency_window=WINDOW)
    counts = []

    for _ in range(4):
        with watch.over() as said:
            await store.save([success(one) for one in await claim(store, worker)])
        counts.append(len(said))

    assert (await store.stats()).states[State.COMPLETED] == 400
    assert max(sorted(counts)[:-1]) <= FEW
    assert max(counts) <= FEW + 3  # the first looks around, and its guess may be short


async def test_locked_tasks_take_a_few_more_however_many_they_are(
    store: MongoStore, worker: WorkerId, watch: Watch
) -> None:
    tasks = [new_task(lock=f"doc:{number}") for number in range(100)]
    await store.add(tasks, idempotency_window=WINDOW)

    with watch.over() as said:
        claims = await claim(store, worker)
        await store.save([success(one) for one in claims])

    assert len(claims) == 100
    assert len({one.fence for one in claims}) == 100
    assert len(said) <= FEW + 6, [name_of(command) for command in said]


async def test_a_bulk_submit_takes_no_more_commands_for_hundreds_than_for_ten(
    store: MongoStore, watch: Watch
) -> None:
    counts = []

    for number in (10, 10, 300):
        with watch.over() as said:
            await store.add(new_tasks(number), idempotency_window=WINDOW)
        counts.append(len(said))

    assert counts[2] <= counts[1]


async def test_a_single_submit_is_one_write(store: MongoStore, watch: Watch) -> None:
    await store.add(new_tasks(1), idempotency_window=WINDOW)

    with watch.over() as said:
        await store.add(new_tasks(1), idempotency_window=WINDOW)

    assert [name_of(c) for c in said if name_of(c) in {"insert", "update", "delete"}] == ["insert"]
    assert len(said) <= 2


async def test_what_a_worker_asks_every_second_is_one_command_each(
    store: MongoStore, worker: WorkerId, watch: Watch
) -> None:
    with watch.over() as said:
        await store.beat(worker, load=1)
        await store.requests(worker)

    assert len(said) == 2


async def test_an_idle_claim_takes_a_look_and_no_write(
    store: MongoStore, worker: WorkerId, watch: Watch
) -> None:
    await store.add(new_tasks(1), idempotency_window=WINDOW)
    await store.save([success(one) for one in await claim(store, worker)])

    with watch.over() as said:
        assert await claim(store, worker) == []

    assert {name_of(command) for command in said} <= {"find", "aggregate"}
    assert len(said) <= FEW
