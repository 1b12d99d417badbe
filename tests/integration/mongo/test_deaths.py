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
from tests.integration.mongo.short_life import BATCH, BATCH_SIZE, Later
from tests.kit.servers.mongo import MongoServer, end_transactions

from holdfast.core.attempt import History
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import TaskFilter
from holdfast.core.task import State, Task
from holdfast.stores.kill_points import POINTS
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.factories import loss, success, task_id, worker_info

LIFE = Path(__file__).with_name("short_life.py")
STEP = 1 if "HOLDFAST_TEST_DEATHS" in os.environ else 8
SEVERAL = {"written": range(2, 27, STEP), "committed": range(6, 27, STEP)}
"""Points of every transaction: the life has two dozen. The long dose dies at each."""


@pytest.fixture(scope="module")
def server() -> Iterator[MongoServer]:
    with MongoServer() as server:
        yield server


@pytest.fixture
def url(server: MongoServer) -> str:
    return server.url(f"deaths_{task_id()[-12:]}")


@pytest.fixture
async def survivor(url: str) -> AsyncIterator[MongoStore]:
    async with MongoStore(url, clock=Later()) as store:
        yield store


@pytest.mark.parametrize(
    "point", [*POINTS, *(f"{point}:{n}" for point in SEVERAL for n in SEVERAL[point])]
)
async def test_a_death_at_any_point_breaks_no_promise(
    survivor: MongoStore, url: str, point: str
) -> None:
    facts = _die_at(point, url)
    end_transactions(url)
    await _rescue(survivor)

    tasks = await _all(survivor)
    assert {fact[1] for fact in facts if fact[0] == "added"} <= tasks.keys()
    assert all(tasks[t].state is State.COMPLETED for what, t in facts if what == "completed")
    together = Counter(task.name for task in tasks.values())[BATCH]
    assert together in (0, BATCH_SIZE)
    assert not await survivor.check()
    assert not _keys_without_a_holder(tasks)

    await _drain(survivor)

    assert {task.state for task in (await _all(survivor)).values()} <= TERMINAL
    for task in tasks:
        history = await survivor.history(tasks[task].id)
        assert history is not None
        _check_history(history)
    assert not await survivor.check()


def _die_at(point: str, url: str) -> list[tuple[str, str]]:
    """What it was acknowledged before it died there."""
    life = subprocess.run(
        [sys.executable, str(LIFE), url],
        env=os.environ | {"HOLDFAST_TEST_KILL_AT": point},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert life.returncode == -signal.SIGKILL, f"{point} was not reached: {life.stderr[-2000:]}"
    return [(what, task) for what, task in (line.split() for line in life.stdout.splitlines())]


async def _rescue(store: MongoStore) -> None:
    """What a living worker does every few seconds."""
    for worker in await store.workers():
        await store.bury(worker.id, beats=None)
    await store.register(info := worker_info())
    await store.claim(info.id, queues=None, capabilities=frozenset(), limit=0)
    await store.save([loss(claim) for claim in await store.orphans(limit=100)])
    assert not await store.orphans(limit=100)


async def _all(store: MongoStore) -> dict[str, Task]:
    page = await store.list(TaskFilter(), limit=1000)
    return {str(task.id): task for task in page.tasks}


def _keys_without_a_holder(tasks: dict[str, Task]) -> set[str | None]:
    waits = [task for task in tasks.values() if task.state is State.BLOCKED and not task.gates]
    blocked = {task.lock for task in waits}
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
