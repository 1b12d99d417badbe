"""A process may die between any two writes, and every promise holds.

Each point is reached by a process of its own, which is killed there. What it was acknowledged must
be there; what it left half done is finished or undone by the next sweep of whoever lives.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pymongo import MongoClient
from tests.integration.mongo.short_life import BATCH, BATCH_SIZE, Later

from holdfast.core.attempt import History
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import TaskFilter
from holdfast.core.task import State, Task
from holdfast.stores.mongo.points import POINTS
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.factories import loss, success, task_id, worker_info
from holdfast.testing.servers.mongo import GivenMongo, MongoServer

LIFE = Path(__file__).with_name("short_life.py")
ONLY_STANDALONE = {"batch-staged", "batch-committed", "batch-shown"}
ONLY_REPLICA_SET = {"completed"}
OF_THE_SWEEP = {"batch-given-up"}
Mongo = MongoServer | GivenMongo


@pytest.fixture(params=["replica set", "standalone"])
def topology(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(topology: str, request: pytest.FixtureRequest) -> Iterator[str]:
    fixture = "mongo_server" if topology == "replica set" else "standalone_mongo"
    server: Mongo = request.getfixturevalue(fixture)
    name = f"deaths_{task_id()[-12:]}"
    yield (url := server.url(name))
    client: MongoClient[dict[str, object]] = MongoClient(url)
    with client:
        client.drop_database(name)


@pytest.fixture
async def survivor(url: str) -> AsyncIterator[MongoStore]:
    async with MongoStore(url, clock=Later()) as store:
        yield store


@pytest.mark.parametrize("point", [point for point in POINTS if point not in OF_THE_SWEEP])
async def test_a_death_at_any_point_breaks_no_promise(
    survivor: MongoStore, url: str, topology: str, point: str
) -> None:
    if topology == "replica set" and point in ONLY_STANDALONE:
        pytest.skip("a replica set has transactions")
    if topology == "standalone" and point in ONLY_REPLICA_SET:
        pytest.skip("a single server has none")

    facts = _die_at(point, url)
    await _rescue(survivor)

    tasks = await _all(survivor)
    assert {fact[1] for fact in facts if fact[0] == "added"} <= tasks.keys()
    assert all(tasks[t].state is State.COMPLETED for what, t in facts if what == "completed")
    together = Counter(task.name for task in tasks.values())[BATCH]
    assert together in ((BATCH_SIZE,) if point == "batch-committed" else (0, BATCH_SIZE))
    assert _left_over(url) == 0
    assert not await survivor.check()
    assert not _keys_without_a_holder(tasks)

    await _drain(survivor)

    assert {task.state for task in (await _all(survivor)).values()} <= TERMINAL
    for task in tasks:
        history = await survivor.history(tasks[task].id)
        assert history is not None
        _check_history(history)
    assert not await survivor.check()


async def test_a_sweep_that_dies_is_finished_by_the_next(standalone_mongo: Mongo) -> None:
    url = standalone_mongo.url(f"deaths_{task_id()[-12:]}")
    _die_at("batch-staged", url)
    _die_at("batch-given-up", url, "sweep")
    assert _left_over(url) == BATCH_SIZE

    async with MongoStore(url, clock=Later()) as store:
        await store.orphans(limit=1)

        assert _left_over(url) == 0
        assert BATCH not in {task.name for task in (await _all(store)).values()}
        assert not await store.check()


def _die_at(point: str, url: str, *words: str) -> list[tuple[str, str]]:
    """What it was acknowledged before it died there."""
    life = subprocess.run(
        [sys.executable, str(LIFE), url, *words],
        env=os.environ | {"HOLDFAST_TEST_KILL_AT": point},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert life.returncode == -signal.SIGKILL, f"{point} was not reached: {life.stderr[-2000:]}"
    return [(what, task) for what, task in (line.split() for line in life.stdout.splitlines())]


async def _rescue(store: MongoStore) -> None:
    """What a living worker's maintenance does every few seconds."""
    for worker in await store.workers():
        await store.bury(worker.id, beats=None)
    await store.save([loss(claim) for claim in await store.orphans(limit=100)])
    assert not await store.orphans(limit=100)


async def _all(store: MongoStore) -> dict[str, Task]:
    page = await store.list(TaskFilter(), limit=1000)
    return {str(task.id): task for task in page.tasks}


def _left_over(url: str) -> int:
    """What is neither in nor out, and records of batches that count and need no finishing."""
    client: MongoClient[dict[str, object]] = MongoClient(url)
    with client:
        database = client.get_default_database()
        staged = database["holdfast.tasks"].count_documents({"place": "staged"})
        return staged + database["holdfast.batches"].count_documents({"counts": True})


def _keys_without_a_holder(tasks: dict[str, Task]) -> set[str | None]:
    blocked = {task.lock for task in tasks.values() if task.state is State.BLOCKED}
    held = {task.lock for task in tasks.values() if task.state is State.QUEUED}
    return blocked - held


async def _drain(store: MongoStore) -> None:
    info = worker_info()
    await store.register(info)
    while True:
        claimed = await store.claim(info.id, queues=None, capabilities=frozenset(), limit=100)
        if not claimed.claims:
            return
        keys = [claim.lock for claim in claimed.claims if claim.lock is not None]
        assert len(keys) == len(set(keys))
        assert not await store.save([success(claim) for claim in claimed.claims])


def _check_history(history: History) -> None:
    numbers = [attempt.number for attempt in history.attempts]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [event.kind for event in history.events].count("submitted") == 1
    lines = [event.detail for event in history.events if event.kind == "log"]
    assert len(lines) % 70 == 0
