"""A worker's heartbeat comes from outside: while the worker can run, and not a moment longer."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import pytest

from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.task import WorkerId
from holdfast.ports.store import Store
from holdfast.testing.eventually import eventually
from holdfast.wiring import open_store

from .conftest import is_gone

BEAT = 0.1

WORKER = """
import sys, time
from holdfast.worker.heartbeat_process import start_heartbeat
import os
heartbeat = start_heartbeat(sys.argv[1], sys.argv[2], float(sys.argv[3]), os.getpid())
print(heartbeat.pid, flush=True)
exec(sys.argv[4])
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tasks.db"


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with open_store(url) as store:
        await store.register(_worker("w1"))
        yield store


class Process:
    """A process that claims to be worker `w1` and has a heartbeat."""

    def __init__(self, url: str, then: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", WORKER, url, "w1", str(BEAT), then],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.popen.stdout is not None
        self.heartbeat = int(self.popen.stdout.readline())

    def go_on(self) -> None:
        """Let it pass its `sys.stdin.readline()`."""
        assert self.popen.stdin is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.popen.kill()
        self.popen.communicate()


async def test_beats_go_on_while_a_c_call_holds_the_interpreter(url: str, store: Store) -> None:
    with Process(url, "import ctypes; ctypes.PyDLL(None).sleep(60)"):
        await _beats_grow(store)


async def test_beats_stop_while_the_worker_is_stopped_and_come_back(url: str, store: Store) -> None:
    with Process(url, "time.sleep(60)") as worker:
        await _beats_grow(store)
        os.kill(worker.popen.pid, signal.SIGSTOP)
        await asyncio.sleep(2 * BEAT)  # the beat that was on its way

        before = await _beats(store)
        await asyncio.sleep(8 * BEAT)
        after = await _beats(store)
        os.kill(worker.popen.pid, signal.SIGCONT)

        assert after == before
        await _beats_grow(store)


async def test_a_killed_worker_is_buried_at_once(url: str, store: Store) -> None:
    with Process(url, "time.sleep(60)") as worker:
        await _beats_grow(store)
        worker.popen.kill()

        await eventually(lambda: _has_status(store, WorkerStatus.DEAD), within=5)


async def test_a_worker_that_leaves_in_good_order_is_not_buried(url: str, store: Store) -> None:
    with Process(url, "sys.stdin.readline(); heartbeat.close(); heartbeat.wait(10)") as worker:
        await _beats_grow(store)
        worker.go_on()
        await asyncio.to_thread(worker.popen.wait, 20)

        assert await _has_status(store, WorkerStatus.ACTIVE)


async def test_a_heart_that_was_killed_is_replaced(url: str, store: Store) -> None:
    with Process(url, "time.sleep(60)") as worker:
        await _beats_grow(store)
        os.kill(worker.heartbeat, signal.SIGKILL)

        await asyncio.sleep(BEAT)
        await _beats_grow(store)


async def test_signals_of_a_service_manager_do_not_stop_the_heartbeat(
    url: str, store: Store
) -> None:
    with Process(url, "time.sleep(60)") as worker:
        await _beats_grow(store)
        os.kill(worker.heartbeat, signal.SIGTERM)
        os.kill(worker.heartbeat, signal.SIGINT)

        await _beats_grow(store)
        assert not is_gone(worker.heartbeat)


async def test_a_worker_with_a_new_id_is_followed(url: str, store: Store) -> None:
    await store.register(_worker("w2"))
    with Process(url, "sys.stdin.readline(); heartbeat.set_worker('w2'); time.sleep(60)") as worker:
        await _beats_grow(store, "w1")
        worker.go_on()

        await _beats_grow(store, "w2")


def _worker(worker_id: str) -> WorkerInfo:
    return WorkerInfo(
        id=WorkerId(worker_id),
        host="here",
        pid=1,
        version="0",
        queues=None,
        capabilities=frozenset(),
        capacity=1,
    )


async def _info(store: Store, worker_id: str = "w1") -> WorkerInfo:
    return next(worker for worker in await store.workers() if worker.id == worker_id)


async def _beats(store: Store, worker_id: str = "w1") -> int:
    return (await _info(store, worker_id)).beats


async def _has_status(store: Store, status: WorkerStatus) -> bool:
    return (await _info(store)).status is status


async def _beats_grow(store: Store, worker_id: str = "w1") -> None:
    """Wait until three more beats have come."""
    goal = await _beats(store, worker_id) + 3

    async def reached() -> bool:
        return await _beats(store, worker_id) >= goal

    await eventually(reached, within=20)
