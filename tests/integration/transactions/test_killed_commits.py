"""A process that is killed while it writes several things together leaves all of them or none, on
each store that survives it; and whoever does the same again finds it done exactly once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.integration.transactions.killed_commit import KIND, QUEUE, WAYS, WORKER, latch_of
from tests.kit.servers.mongo import MongoServer, end_transactions

from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.stores.kill_points import IN_A_COMMIT
from holdfast.testing.factories import WINDOW, new_task, task_id, worker_info
from holdfast.wiring import open_store

VICTIM = Path(__file__).with_name("killed_commit.py")
TOO_EARLY = ("tasks-added", "record-written", "record-written:2", "end-written", "written")
"""Points before the commit. `answered` is in the victim itself, after everything."""
POINTS = {
    ("sqlite", "commit"): "tasks-added record-written record-written:2 answered",
    ("sqlite", "settle"): "end-written tasks-added record-written:2 written answered",
    ("postgres", "commit"): "tasks-added record-written written committed",
    ("postgres", "settle"): "end-written record-written written committed",
    ("mongo", "commit"): "tasks-added record-written:2 written committed",
    ("mongo", "settle"): "end-written record-written:2 written committed",
}


@pytest.fixture(scope="module")
def own_server() -> Iterator[MongoServer]:
    """One whose sessions may all be ended."""
    with MongoServer() as server:
        yield server


def url_of(request: pytest.FixtureRequest, store: str, path: Path) -> str:
    if store == "sqlite":
        return f"sqlite:///{path}/tasks.db"
    if store == "postgres":
        return str(request.getfixturevalue("fresh_schema"))
    server: MongoServer = request.getfixturevalue("own_server")
    return server.url(f"killed_{task_id()[-12:]}")


def test_every_point_is_died_at() -> None:
    died_at = {point.partition(":")[0] for points in POINTS.values() for point in points.split()}

    assert died_at == {*IN_A_COMMIT, "answered"}


@pytest.mark.parametrize(("kind", "way"), POINTS)
async def test_a_commit_killed_at_any_point_leaves_all_or_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, way: str
) -> None:
    url = url_of(request, kind, tmp_path)
    async with open_store(url) as store:
        await store.register(worker_info(id=WORKER, queues=("first",)))
        for point in POINTS[kind, way].split():
            ids = [await started(store), task_id(), task_id()]

            kill_at(point, url, way, ids)
            if kind == "mongo":
                end_transactions(url)

            assert await seen(store, way, ids) == ("nothing" if point in TOO_EARLY else "all")
            for _ in range(2):
                await WAYS[way](store, ids)
                assert await seen(store, way, ids) == "all"
        assert not await store.check()


async def started(store: Store) -> TaskId:
    """A task that runs, to be completed or left alone."""
    new = new_task(queue="first")
    await store.add([new], idempotency_window=WINDOW)
    claimed = await store.claim(WORKER, queues=["first"], capabilities=frozenset(), limit=1)
    assert [claim.task_id for claim in claimed.claims] == [new.id]
    return new.id


def kill_at(point: str, url: str, way: str, ids: Sequence[str]) -> None:
    victim = subprocess.run(
        [sys.executable, str(VICTIM), url, way, *ids],
        env=os.environ | {"HOLDFAST_TEST_KILL_AT": point},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert victim.returncode == -signal.SIGKILL, f"{point} was not reached: {victim.stderr}"


async def seen(store: Store, way: str, ids: Sequence[str]) -> str:
    """How much of it there is: `all`, `nothing`, or what exactly."""
    wanted = TaskFilter(ids=tuple(map(TaskId, ids[1:])), queue=QUEUE)
    tasks = (await store.list(wanted, limit=9)).tasks
    records = [await one_record(store, KIND, f"{ids[0]}/{n}") for n in (1, 2)]
    versions = [0 if record is None else record.version for record in records]
    ended = await store.get(TaskId(ids[0]))
    assert ended is not None
    is_completed = ended.state is State.COMPLETED or way == "commit"
    is_running = ended.state is State.RUNNING
    left = [latch.left for latch in await store.gates(names=[latch_of(ids[0])], limit=1)]
    if (len(tasks), versions, left, is_completed) == (2, [1, 1], [2], True):
        return "all"
    if (len(tasks), versions, left, is_running) == (0, [0, 0], [], True):
        return "nothing"
    return f"{len(tasks)} tasks, records of versions {versions}, {left} to go, {ended.state}"
