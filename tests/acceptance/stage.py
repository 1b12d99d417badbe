"""What an acceptance test needs: an app on a fresh store, real workers, signals, and patience."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from tests.kit.checker import Broken, Picture, check, collect
from tests.kit.startlog import StartLog

from holdfast import Holdfast
from holdfast.core.lifecycle import TERMINAL, UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.wiring import open_store

T = TypeVar("T")

SHOP = Path(__file__).with_name("shop.py")
BIN = Path(sys.executable).parent
PATIENCE = 60.0
"""Enough for a machine that is busy with other things; a test that passes never waits for it."""


def until(probe: Callable[[], T], *, within: float = PATIENCE, every: float = 0.02) -> T:
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + within
    while not (answer := probe()):
        assert time.monotonic() < deadline, f"not true within {within} s; last answer: {answer!r}"
        time.sleep(every)
    return answer


class WorkerProcess:
    """`holdfast worker …` as a user starts it: a supervisor and its worker processes."""

    def __init__(self, popen: subprocess.Popen[bytes], output: Path) -> None:
        self.popen = popen
        self.output = output

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def is_running(self) -> bool:
        return self.popen.poll() is None

    def children(self) -> list[int]:
        """The worker processes, where tasks run."""
        return children(self.pid)

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def wait(self, within: float = PATIENCE) -> int:
        return self.popen.wait(within)

    def end(self) -> None:
        """Kill it with everything it started."""
        family = descendants(self.pid)
        for pid in (self.pid, *family):
            send(pid, signal.SIGKILL)
        self.popen.wait(PATIENCE)

    def said(self) -> str:
        return self.output.read_text(errors="replace")


class Stage:
    """One test's world: its folder, its store, its environment, its app and its workers.

    The store is a file in the folder, unless `url` names another one.
    """

    def __init__(self, folder: Path, *, url: str | None = None, **settings: str) -> None:
        self.folder = folder
        self.log = StartLog(folder / "starts.log")
        self.workers: list[WorkerProcess] = []
        self.environment = os.environ | {
            "HOLDFAST_URL": url or f"sqlite:///{folder / 'shop.db'}",
            "SHOP_LOG": str(self.log.path),
            "PYTHONFAULTHANDLER": "1",
        }
        self.environment |= _variables(settings)
        if url is not None and not url.startswith("sqlite"):
            # Here and not in the first of the workers that race for it.
            asyncio.run(open_store(url).migrate())
        self.shop: Any = self._load()
        self.app: Holdfast = self.shop.app

    @property
    def is_slow(self) -> bool:
        """Whether the store is a test server that does a hundredth of what others do."""
        url = self.environment["HOLDFAST_URL"]
        return url.startswith("mongodb") and "MONGODB_URL" not in os.environ

    def _load(self) -> ModuleType:
        """The shop as a module of this test alone, made with this test's environment."""
        spec = importlib.util.spec_from_file_location(f"shop_{id(self)}", SHOP)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        before = dict(os.environ)
        os.environ.update(self.environment)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        finally:
            os.environ.clear()
            os.environ.update(before)
        return module

    def worker(
        self,
        *arguments: str,
        ready: bool = True,
        environment: Mapping[str, str] | None = None,
        app: Path = SHOP,
        **settings: str,
    ) -> WorkerProcess:
        """Start `holdfast worker shop.py:app …`, and wait until it has registered."""
        output = self.folder / f"worker-{len(self.workers)}.log"
        known = {worker.id for worker in self.app.workers()} if ready else set()
        with output.open("wb") as file:
            popen = subprocess.Popen(
                [BIN / "holdfast", "worker", f"{app}:app", *arguments],
                cwd=self.folder,
                env=self.environment | _variables(settings) | dict(environment or {}),
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        worker = WorkerProcess(popen, output)
        self.workers.append(worker)
        if ready:
            until(lambda: {w.id for w in self.app.workers()} - known or not worker.is_running)
            assert worker.is_running, worker.said()
        return worker

    def fleet(
        self, number: int, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> list[WorkerProcess]:
        """Several of them, which start side by side."""
        fleet = [
            self.worker(*arguments, ready=False, environment=environment) for _ in range(number)
        ]

        def is_ready(worker: WorkerProcess) -> bool:
            assert worker.is_running, worker.said()
            return bool({each.pid for each in self.app.workers()} & set(worker.children()))

        for worker in fleet:
            until(partial(is_ready, worker))
        return fleet

    def command(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `holdfast …` to its end."""
        done = subprocess.run(
            [BIN / "holdfast", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0 or not check, done.stderr + done.stdout
        return done

    def python(
        self, code: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Another process that uses the shop as a library: `shop` and `app` are there."""
        prelude = (
            "import sys, importlib.util\n"
            f"spec = importlib.util.spec_from_file_location('shop', {str(SHOP)!r})\n"
            "shop = importlib.util.module_from_spec(spec); sys.modules['shop'] = shop\n"
            "spec.loader.exec_module(shop); app = shop.app\n"
        )
        return subprocess.Popen(
            [sys.executable, "-c", prelude + code, *arguments],
            cwd=self.folder,
            env=self.environment | dict(environment or {}),
            stdout=subprocess.PIPE,
            text=True,
        )

    def unfinished(self) -> int:
        return self.app.count(TaskFilter(states=UNFINISHED))

    def finished(self) -> int:
        return self.app.count(TaskFilter(states=TERMINAL))

    def pictures(self) -> list[Picture]:
        return self.app.wait_for(collect(self.app.client.store))

    def broken(
        self,
        acknowledged: Collection[str] = (),
        *,
        pictures: Sequence[Picture] | None = None,
        crash_limit: int = 3,
        finished: bool = True,
    ) -> list[Broken]:
        """Judge the store, as it is or as it was pictured, against the start log."""
        return check(
            self.pictures() if pictures is None else pictures,
            acknowledged=acknowledged,
            starts=self.log.starts(),
            crash_limit=crash_limit,
            finished=finished,
        )

    def begun(self, task_id: str, attempt: int = 1) -> bool:
        return any((s.task_id, s.attempt) == (task_id, attempt) for s in self.log.starts())

    def close(self) -> None:
        for worker in self.workers:
            worker.end()
        self.app.close()


def _variables(settings: Mapping[str, str]) -> dict[str, str]:
    return {f"HOLDFAST_{name.upper()}": value for name, value in settings.items()}


def children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def is_alive(pid: int) -> bool:
    """Whether the process can still run: a zombie cannot."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def overload() -> float:
    """How many times over this machine is busy; 1 if it is not."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def ids(handles: Sequence[Any]) -> list[str]:
    return [handle.id for handle in handles]
