"""A server that speaks MongoDB's protocol, of a test's own.

    with MongoServer() as server:               # a replica set of one; MongoServer(standalone=True)
        url = server.url("shop")                # mongodb://127.0.0.1:…/shop
        server.kill9()                          # as a crash would
        server.start()                          # at the same address, with what was written

It is SecantusDB from PyPI: the protocol over WiredTiger, beta, and under the GPL, so it is only
ever run as a process of its own and never imported. What passes here has met the protocol and a
journal, not MongoDB itself: `MONGODB_URL` makes the shared fixtures use a real one.

Most tests need no server of their own: see the fixtures `mongo_server` and `fresh_mongo` of
`tests/conftest.py`. It ends with the process that started it, however that dies.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from shutil import disk_usage, rmtree
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

from pymongo import MongoClient
from tests.kit.servers import processes
from tests.kit.servers.account import ServerError
from tests.kit.servers.postgres import free_port

PROGRAM: Final = "secantusd-py"
PATIENCE: Final = 30.0
ROOM: Final = 2 << 30


def end_transactions(url: str) -> None:
    """What a server does by itself, a minute after the death of a client."""
    client: MongoClient[dict[str, object]] = MongoClient(url)
    with client:
        client.admin.command("killAllSessions", [])


class GivenMongo(NamedTuple):
    """A server that somebody else runs, named by `MONGODB_URL`."""

    base: str

    def url(self, database: str = "holdfast") -> str:
        return urlunsplit(urlsplit(self.base)._replace(path=f"/{database}"))


class MongoServer:
    """One server in one folder. Starting, stopping and asking work from any process.

    Args:
        directory: Where it lives; a new folder in `memory_folder` by default.
        standalone: It calls itself no replica set, and so has no transactions.
        owner: The process it must not outlive; this one by default.
    """

    def __init__(
        self, directory: Path | None = None, *, standalone: bool = False, owner: int | None = None
    ) -> None:
        self.directory = directory or Path(
            tempfile.mkdtemp(prefix="holdfast-mongo-", dir=memory_folder())
        )
        self.directory.mkdir(parents=True, exist_ok=True)
        self.standalone = standalone
        self.owner = owner or os.getpid()
        self.log = self.directory / "server.log"

    def start(self) -> Self:
        """Start it and return when it answers."""
        if self.is_running:
            return self
        if not (self.directory / "port").exists():
            (self.directory / "port").write_text(str(free_port()))
        pid = processes.launch(
            self._command(),
            folder=self.directory,
            owner=self.owner,
            environment=os.environ,
            unprivileged=False,
        )
        (self.directory / "pid").write_text(str(pid))
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if not processes.is_alive(pid) or time.monotonic() > deadline:
                raise ServerError(f"{PROGRAM} did not start; its log ends:\n{self.said(10)}")
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """End it in good order and wait."""
        self._end(signal.SIGTERM)

    def kill9(self) -> None:
        """SIGKILL it: only what its journal holds will be there again."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers, until `go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def restart(self, *, away: float = 0.0) -> None:
        """Kill it, leave it away for so many seconds, and start it at the same address."""
        self.kill9()
        time.sleep(away)
        self.start()

    def close(self) -> None:
        """End it and remove its folder."""
        self.kill9()
        rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Its process id, if it runs."""
        try:
            pid = int((self.directory / "pid").read_text())
        except (OSError, ValueError):
            return None
        return pid if processes.is_alive(pid) else None

    @property
    def is_running(self) -> bool:
        return self.pid is not None and self._answers()

    @property
    def port(self) -> int:
        return int((self.directory / "port").read_text())

    def url(self, database: str = "holdfast") -> str:
        return f"mongodb://127.0.0.1:{self.port}/{database}"

    def said(self, lines: int = 50) -> str:
        """The end of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _command(self) -> list[str]:
        place = ["--port", str(self.port), "--storage-path", str(self.directory / "data")]
        topology = ["--standalone"] if self.standalone else []
        # It does as it is asked by `j: true`, but for the end of a transaction.
        durable = ["--sync-on-commit"]
        return [str(_program()), *place, "--log-level", "WARNING", *durable, *topology]

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
                return True
        except OSError:
            return False

    def _end(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is not None:
            processes.send(pid, number)
            processes.wait_for_end(pid, within=PATIENCE)

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is not None:
            processes.send(pid, number)


class MoodyServer(MongoServer):
    """One that does as `configureFailPoint` says."""

    def _command(self) -> list[str]:
        return [*super()._command(), "--enable-test-commands"]

    def fail(self, command: str, code: int, *, times: int = 1) -> None:
        self._configure({"times": times}, {"failCommands": [command], "errorCode": code})

    def lose_majority(self, command: str, code: int, *, times: int = 1) -> None:
        """The command is carried out, and answered with the word that others may not have it."""
        problem = {"code": code, "errmsg": "told to say so"}
        data = {"failCommands": [command], "writeConcernError": problem}
        self._configure({"times": times}, data)

    def drop(self, database: str) -> None:
        from pymongo import MongoClient

        client: MongoClient[dict[str, Any]] = MongoClient(self.url())
        with client:
            client.drop_database(database)

    def relent(self) -> None:
        self._configure("off", {})

    def _configure(self, mode: object, data: dict[str, Any]) -> None:
        from pymongo import MongoClient

        client: MongoClient[dict[str, Any]] = MongoClient(self.url())
        with client:
            client.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)


def memory_folder() -> Path:
    """Where a test server keeps its data: in memory if there is room, as every write waits for the
    journal. That survives the end of the server, which is all that tests bring about.
    """
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and disk_usage(memory).free > ROOM
    return memory if roomy else Path(tempfile.gettempdir())


def _program() -> Path:
    """It stands beside the interpreter, as whoever installed it left it."""
    program = Path(sys.executable).with_name(PROGRAM)
    if not program.exists():
        raise ServerError(
            "no server to test MongoDB's protocol with. `scripts/setup test` installs one (the "
            "wheel secantusdb); or set MONGODB_URL to a server of your own."
        )
    return program
