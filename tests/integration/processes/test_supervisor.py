"""`holdfast worker` as real processes: it drains, restarts, buries, reloads, and leaves no orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.app import Holdfast
from holdfast.core.task import AttemptEnd, Cause, State, WorkerInfo, WorkerStatus
from holdfast.testing.eventually import eventually
from holdfast.worker.options import WorkerOptions

from .conftest import is_gone, pid_in

SHOP = Path(__file__).with_name("shop.py")


class Service:
    """A supervisor with its worker processes."""

    def __init__(self, folder: Path, **options: Any) -> None:
        given = {"app": f"{SHOP}:app", "processes": 1} | options
        environment = os.environ | {
            "HOLDFAST_URL": f"sqlite:///{folder}/tasks.db",
            "HOLDFAST_LEASE": "2",
            "HOLDFAST_HEARTBEAT": "0.2",
            "HOLDFAST_SWEEP": "0.3",
        }
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "holdfast.worker.supervisor",
                    WorkerOptions(**given).to_json(),
                ],
                env=environment,
                cwd=folder,
                stdout=log,
                stderr=log,
            )

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    async def exit_code(self) -> int:
        await eventually(lambda: self.popen.poll() is not None, within=30)
        assert self.popen.returncode is not None
        return self.popen.returncode


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    services: list[Service] = []

    def start(**options: Any) -> Service:
        services.append(Service(tmp_path, **options))
        return services[-1]

    yield start
    for service in services:
        service.popen.kill()
        service.popen.wait()
        print(service.log.read_text())


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Holdfast]:
    app = Holdfast(url=f"sqlite:///{tmp_path}/tasks.db")
    names: dict[str, Any] = {}
    for name, text in (
        ("note", "def note(file: str, text: str) -> str: ..."),
        ("slow", "def slow(file: str, seconds: float) -> int: ..."),
        ("hold_the_gil", "def hold_the_gil(file: str, seconds: int) -> int: ..."),
        ("square", "def square(number: int) -> int: ..."),
    ):
        exec(text, names)
        app.task(name=f"shop.{name}", timeout=120)(names[name])
    async with app:
        yield app


async def alive(app: Holdfast) -> list[WorkerInfo]:
    return [worker for worker in await app.workers_async() if worker.status is WorkerStatus.ACTIVE]


async def workers(app: Holdfast, count: int) -> list[WorkerInfo]:
    """Wait until so many are registered and alive."""

    async def enough() -> list[WorkerInfo]:
        found = await alive(app)
        assert len(found) == count
        return found

    return await eventually(enough, within=30)


async def submit(app: Holdfast, name: str, **arguments: Any) -> Any:
    return await app.submit_by_name_async(f"shop.{name}", arguments)


async def test_tasks_are_run_by_as_many_processes_as_asked_for(app: Holdfast, start: Any) -> None:
    service = start(processes=2)
    found = await workers(app, 2)

    handles = [await submit(app, "square", number=n) for n in range(4)]
    results = [await handle.result_async(timeout=30) for handle in handles]
    service.signal(signal.SIGTERM)

    assert results == [0, 1, 4, 9]
    assert len({worker.pid for worker in found}) == 2
    assert await service.exit_code() == 0
    assert await alive(app) == []
