"""pgbouncer in front of a test server, in transaction mode as production has it.

    with PgBouncer(server) as bouncer:
        url = bouncer.url("shop")

Few server connections for many clients, so that session state left behind meets its next victim.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import Literal, Self

from tests.kit.servers import processes
from tests.kit.servers.account import ServerError, hand_over
from tests.kit.servers.debian import package
from tests.kit.servers.postgres import PostgresServer, free_port

Pooling = Literal["session", "transaction", "statement"]
PATIENCE = 10.0

CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={target} user=postgres password={password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 500
server_reset_query =
"""


class PgBouncer:
    """One pgbouncer; ends with this process at the latest."""

    def __init__(
        self, server: PostgresServer, mode: Pooling = "transaction", *, size: int = 4
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="holdfast-bouncer-"))
        self.directory.chmod(0o711)
        self.port = free_port()
        self._pid: int | None = None
        self._server = server
        settings = CONFIGURATION.format(
            target=server.port, password=server.password, port=self.port, mode=mode, size=size
        )
        (self.directory / "pgbouncer.ini").write_text(settings)
        self._program, self._libraries = self._programs()
        hand_over(self.directory)

    def url(self, database: str = "postgres") -> str:
        return self._server.url(database, port=self.port)

    def start(self) -> Self:
        """Start it, at the same address as before, and return when it accepts connections."""
        self._pid = processes.launch(
            [str(self._program), str(self.directory / "pgbouncer.ini")],
            folder=self.directory,
            owner=os.getpid(),
            environment={"LD_LIBRARY_PATH": str(self._libraries)} if self._libraries else {},
        )
        self._wait()
        return self

    def stop(self) -> None:
        if self._pid is not None:
            processes.kill_family(self._pid)
            self._pid = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                assert self._pid is not None
                if not processes.is_alive(self._pid) or time.monotonic() > deadline:
                    log = (self.directory / "server.log").read_text(errors="replace")
                    raise ServerError(f"pgbouncer did not start; its log says:\n{log}") from None
                time.sleep(0.02)
            else:
                return

    def _programs(self) -> tuple[Path, Path | None]:
        """The program and its libraries: `HOLDFAST_TEST_PGBOUNCER`, the system's, or Debian's."""
        if given := os.environ.get("HOLDFAST_TEST_PGBOUNCER") or shutil.which("pgbouncer"):
            return Path(given), None
        try:
            tree = package("pgbouncer")
        except ServerError as problem:
            raise ServerError(
                f"{problem} Install pgbouncer, or name the program in HOLDFAST_TEST_PGBOUNCER."
            ) from None
        # Copied, as the account it runs under may not reach the environment.
        program = shutil.copy(tree / "usr/sbin/pgbouncer", self.directory)
        for library in tree.rglob("lib*.so*"):
            shutil.copy(library, self.directory)
        return Path(program), self.directory
