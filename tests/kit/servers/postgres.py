"""A PostgreSQL server of a test's own.

    with PostgresServer() as server:                    # 18; PostgresServer(version=16)
        url = server.create_database("shop")            # postgresql://postgres:…@127.0.0.1:…/shop
        server.restart("immediate")                     # as after a crash, at the same address

Most tests need no server of their own: the fixtures `postgres`, `postgres16` and `fresh_database`
of `tests/conftest.py` share one per session. Take your own to stop, restart or configure it.

Durable as in production (fsync on), on a free port of the loopback and, where the path is short
enough, on a unix socket. All that is known of a server is in its folder, so any process can attach
to a running one by naming the folder. It ends with the process that started it, however that dies.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

from tests.kit.servers import processes
from tests.kit.servers.account import ServerError, account, home_for_server
from tests.kit.servers.binaries import Version, postgres_programs

Mode = Literal["smart", "fast", "immediate"]
SIGNALS: dict[Mode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
PATIENCE = 60.0
LONGEST_SOCKET = 90  # a socket's whole path must fit into 107 bytes
DEFAULTS = {"max_connections": "200", "listen_addresses": "127.0.0.1", "log_checkpoints": "off"}


class PostgresServer:
    """One cluster in one folder. Starting, stopping and asking work from any process.

    Args:
        directory: Where it lives; a new temporary folder by default. As root, a folder that other
            users cannot reach (`tmp_path` is one) is replaced by a temporary one: see `directory`.
        version: 18 or 16.
        settings: For `postgresql.conf`: `{"fsync": "off"}`.
        owner: The process it must not outlive; this one by default.
    """

    def __init__(
        self,
        directory: Path | None = None,
        version: Version = 18,
        *,
        settings: Mapping[str, str] | None = None,
        owner: int | None = None,
    ) -> None:
        self.directory = home_for_server(directory)
        self.version = version
        self.owner = owner or os.getpid()
        self.log = self.directory / "server.log"
        self._data = self.directory / "data"
        self._programs = postgres_programs(version, self.directory)
        self._settings = DEFAULTS | dict(settings or {})

    # -- its life --------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it and return when it answers. The first start makes the cluster."""
        if self.is_running:
            return self
        if not (self._data / "PG_VERSION").exists():
            self._make_cluster()
        pid = processes.launch(
            [str(self._programs / "postgres"), "-D", str(self._data)],
            folder=self.directory,
            owner=self.owner,
            environment=_environment(),
        )
        deadline = time.monotonic() + PATIENCE
        while not self._is_ready(pid):
            if not processes.is_alive(pid) or time.monotonic() > deadline:
                raise ServerError(f"PostgreSQL did not start; its log ends:\n{self.said(10)}")
            time.sleep(0.01)
        return self

    def stop(self, mode: Mode = "fast") -> None:
        """End it and wait. "immediate" aborts as a crash would, without a last checkpoint."""
        pid = self.pid
        if pid is not None:
            processes.send(pid, SIGNALS[mode])
            processes.wait_for_end(pid, within=PATIENCE)

    def restart(self, mode: Mode = "immediate", *, away: float = 0.0) -> None:
        """Stop it, leave it away for so many seconds, and start it at the same address."""
        self.stop(mode)
        time.sleep(away)
        self.start()

    def kill9(self) -> None:
        """SIGKILL the server and all of its processes at once, as the end of the machine would."""
        pid = self.pid
        if pid is not None:
            processes.kill_family(pid)

    def close(self) -> None:
        """End it and remove its folder."""
        self.stop("immediate")
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- questions -------------------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """The process id of the postmaster, if it runs."""
        lines = self._status()
        pid = int(lines[0]) if lines else None
        return pid if pid is not None and processes.is_alive(pid) else None

    @property
    def is_running(self) -> bool:
        pid = self.pid
        return pid is not None and self._is_ready(pid)

    @property
    def port(self) -> int:
        return int(self._read("port"))

    @property
    def password(self) -> str:
        """That of its only user, `postgres`."""
        return self._read("password")

    def url(self, database: str = "postgres", *, port: int = 0) -> str:
        """Where a client finds it; `port` is that of a proxy in between."""
        address = f"postgres:{self.password}@127.0.0.1:{port or self.port}"
        return f"postgresql://{address}/{quote(database)}"

    def socket_url(self, database: str = "postgres") -> str:
        """The same through its unix socket, which needs no password."""
        return f"postgresql://postgres@/{quote(database)}?host={self.directory}&port={self.port}"

    def said(self, lines: int = 50) -> str:
        """The end of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    # -- orders ----------------------------------------------------------------------------------

    def create_database(self, name: str, *, template: str = "template0") -> str:
        """Make a database and return its URL. A template must have no visitors meanwhile."""
        self.sql(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database, throwing out whoever is connected to it."""
        self.sql(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def terminate_backends(self) -> int:
        """Break every client's connection, as an operator may; how many there were."""
        answer = self.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return int(answer)

    def sql(self, text: str, *, database: str = "postgres") -> str:
        """Run statements with psql: one row per line, columns parted by `|`.

        A program and not a driver: it works inside and outside of event loops, and proves nothing
        about the driver under test.
        """
        options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-v", "ON_ERROR_STOP=1"]
        return self._run("psql", *options, "--command", text, self.url(database)).strip()

    # -- the works -------------------------------------------------------------------------------

    def _make_cluster(self) -> None:
        password = secrets.token_hex(8)
        self._write("password", password)
        self._run(
            "initdb", "--pgdata", str(self._data), "--username", "postgres", "--encoding", "UTF8",
            "--locale", "C", "--pwfile", str(self.directory / "password"), "--auth-local", "trust",
            "--auth-host", "scram-sha-256", "--no-sync", *self._quick_login(), unprivileged=True,
        )  # fmt: skip
        self._write("port", str(free_port()))
        sockets = str(self.directory) if len(str(self.directory)) < LONGEST_SOCKET else ""
        settings = {
            "port": str(self.port),
            "unix_socket_directories": sockets,
            "unix_socket_permissions": "0700",
            **self._settings,
        }
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _quick_login(self) -> tuple[str, ...]:
        """Options that spare every connection some milliseconds of hashing. PostgreSQL 14 and 15,
        which `HOLDFAST_TEST_PG_BIN` may name, do not know them.
        """
        _, _, version = self._run("initdb", "--version").strip().rpartition(" ")
        return ("--set", "scram_iterations=1") if int(version.partition(".")[0]) >= 16 else ()

    def _run(self, program: str, *arguments: str, unprivileged: bool = False) -> str:
        user = account() if unprivileged else None
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.directory,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )
        if done.returncode != 0:
            raise ServerError(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def _is_ready(self, pid: int) -> bool:
        lines = self._status()
        return len(lines) > 7 and int(lines[0]) == pid and lines[7].strip() == "ready"

    def _status(self) -> list[str]:
        """`postmaster.pid`: line 1 the process, line 8 what it is doing."""
        try:
            return (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return []

    def _read(self, name: str) -> str:
        return (self.directory / name).read_text()

    def _write(self, name: str, text: str) -> None:
        file = self.directory / name
        file.write_text(text)
        file.chmod(0o600)
        if user := account():
            os.chown(file, user.pw_uid, user.pw_gid)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment() -> dict[str, str]:
    """Ours without what would steer PostgreSQL's programs elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return kept | {"LC_ALL": "C", "LANG": "C"}
