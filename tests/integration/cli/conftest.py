"""Runs the real command in real processes, on one SQLite file per test session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document and nothing else."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The JSON error, which must be all there is on standard error."""
        return json.loads(self.err)["error"]


class Zygote:
    """The helper process that forks commands; see `zygote.py`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "zygote.py")],
            env=os.environ | {"PYTHONPATH": str(HERE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, arguments: Sequence[str], environment: dict[str, str], folder: Path, stdin: str | None
    ) -> Ran:
        given, out, err = (self._folder / name for name in ("stdin", "stdout", "stderr"))
        given.write_text(stdin or "")
        request = {
            "arguments": list(arguments),
            "environment": environment,
            "folder": str(folder),
            "stdin": str(given) if stdin is not None else os.devnull,
            "stdout": str(out),
            "stderr": str(err),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return Ran(code, out.read_text(), err.read_text())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


@dataclass(frozen=True)
class Shell:
    """A place to run commands in: a folder, and the store they use unless told otherwise."""

    folder: Path
    url: str
    zygote: Zygote

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "NO_COLOR"))}
        return kept | {"HOLDFAST_URL": self.url, "PYTHONPATH": str(HERE), "COLUMNS": "200"} | more

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "holdfast", *arguments]

    def run(self, *arguments: str, stdin: str | None = None, **environment: str) -> Ran:
        """Run a command in a process of its own."""
        return self.zygote.run(arguments, self.environment(**environment), self.folder, stdin)

    def cold(self, *arguments: str, program: str | None = None) -> Ran:
        """The same from nothing, as a user's shell does it; or a script in the folder."""
        done = subprocess.run(
            [sys.executable, program, *arguments] if program else self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(
        self, *arguments: str, stdout: int = subprocess.DEVNULL, **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start a command and leave it running."""
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment(**environment),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
        )

    def ok(self, *arguments: str) -> Any:
        """Run with --json, expect success, and return what it said."""
        ran = self.run(*arguments, "--json")
        assert ran.code == 0, ran.err
        return ran.json

    def submit(self, name: str, payload: object = None, *options: str) -> str:
        """Submit a task of the shop and return its id."""
        data = [] if payload is None else [json.dumps(payload)]
        added = self.ok("submit", "shop:app", name, *data, *options)
        return str(added["task_id"])

    def work(self, *options: str) -> None:
        """Run everything that is ready."""
        ran = self.run("worker", "shop:app", "--burst", *options)
        assert ran.code == 0, ran.err


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    helper = Zygote(tmp_path_factory.mktemp("zygote"))
    yield helper
    helper.close()


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Shell:
    """The shared store, for tests that only look or keep to their own tasks."""
    folder = tmp_path_factory.mktemp("cli")
    return Shell(folder, f"sqlite:///{folder / 'shop.db'}", zygote)


@pytest.fixture
def fresh(tmp_path: Path, zygote: Zygote) -> Shell:
    """A store that no other test has seen."""
    return Shell(tmp_path, f"sqlite:///{tmp_path / 'fresh.db'}", zygote)


@dataclass(frozen=True)
class World:
    """A store with one task in each kind of state."""

    shell: Shell
    completed: str
    dead: str
    failed: str
    scheduled: str
    unserved: str
    walked: str

    @property
    def all(self) -> Sequence[str]:
        return (self.completed, self.dead, self.failed, self.scheduled, self.unserved, self.walked)


@pytest.fixture(scope="session")
def world(shell: Shell) -> World:
    ids = World(
        shell=shell,
        completed=shell.submit("send_mail", {"to": "ann"}, "--priority", "high"),
        dead=shell.submit("bill", {"customer": "ghost"}),
        failed=shell.submit("refuse", {"n": 1}),
        scheduled=shell.submit("send_mail", {"to": "bob"}, "--delay", "2h"),
        unserved=shell.submit("send_mail", {"to": "eve"}, "--queue", "attic", "--owner", "eve"),
        walked=shell.submit("steps", {"seconds": 0.02}),
    )
    shell.work("-q", "default", "-q", "steps")
    return ids
