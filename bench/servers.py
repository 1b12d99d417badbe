"""The servers that products are measured on, started for the run and gone with it.

PostgreSQL is as durable as it comes: `fsync` and `synchronous_commit` on. Redis (Valkey, from a
wheel) keeps nothing on disk, its quickest way: that is to the advantage of the peers that use it.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from tests.kit.servers.account import ServerError
from tests.kit.servers.mongo import MongoServer
from tests.kit.servers.postgres import PostgresServer

from bench.environments import Unavailable, environment
from bench.machine import cpu_seconds, parent

SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
"""What anybody sets who means PostgreSQL to be quick; all else is its default."""


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running PostgreSQL, and what it has done so far."""

    admin: str
    """The URL of a database that is not measured."""
    pid: int | None
    """The process that all others of the server descend from, if it is on this machine."""

    def fresh(self, name: str) -> str:
        """The URL of an empty database of that name. What was in it before is gone."""
        self.drop(name)
        ask(self.admin, f'CREATE DATABASE "{name}"')
        ask(self.admin, "CHECKPOINT")
        return urlunsplit(urlsplit(self.admin)._replace(path=f"/{name}"))

    def drop(self, name: str) -> None:
        ask(self.admin, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def wal(self) -> int:
        """Bytes of write-ahead log ever written."""
        return int(ask(self.admin, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    def cpu(self) -> float:
        """Processor seconds of all its processes so far; 0 if it is not on this machine."""
        return cpu_seconds(self.pid) if self.pid else 0.0

    def version(self) -> str:
        return f"PostgreSQL {ask(self.admin, 'SHOW server_version')}"


def ask(url: str, query: str) -> Any:
    """The first value that a query answers with, on a connection of its own; None if none."""
    rows = ask_all(url, query)
    return rows[0][0] if rows else None


def ask_all(url: str, query: str) -> list[Any]:
    """All rows of the answer."""

    async def work() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return list(await connection.fetch(query))
        finally:
            await connection.close()

    return asyncio.run(work())


@contextmanager
def postgres(folder: Path | None = None) -> Iterator[Postgres]:
    """A PostgreSQL server of our own, or the one that `BENCH_POSTGRES` names."""
    given = os.environ.get("BENCH_POSTGRES")
    if given:
        yield Postgres(given, parent(int(ask(given, "SELECT pg_backend_pid()"))))
        return
    with PostgresServer(folder, settings=SETTINGS) as server:
        yield Postgres(server.url(), server.pid)


@dataclass(frozen=True, slots=True)
class Redis:
    """A running Redis that keeps nothing on disk."""

    url: str
    pid: int

    def fresh(self) -> str:
        """The URL of an empty database; there is only one, and it is emptied."""
        if not self._ask("FLUSHALL").startswith("+OK"):
            raise Unavailable("Redis did not empty itself")
        return self.url

    def cpu(self) -> float:
        return cpu_seconds(self.pid)

    def version(self) -> str:
        found = dict(re.findall(r"^(\w+)_version:(\S+)", self._ask("INFO server"), re.MULTILINE))
        return f"Valkey {found['valkey']}" if "valkey" in found else f"Redis {found.get('redis')}"

    def _ask(self, command: str) -> str:
        """The first part of the answer, which is all that we need of any."""
        parts = urlsplit(self.url)
        with socket.create_connection((str(parts.hostname), parts.port or 6379), 5) as connection:
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(4096).decode()


@contextmanager
def redis(folder: Path) -> Iterator[Redis]:
    """A Redis server of our own."""
    found = sorted(environment("valkey").parent.glob("lib/*/site-packages/**/valkey-server"))
    if not found:
        raise Unavailable("the wheel of Valkey holds no server for this system")
    port = _free_port()
    options = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(
        [found[0], *options, "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        _until_open(port, process)
        yield Redis(f"redis://127.0.0.1:{port}/0", process.pid)
    finally:
        process.terminate()
        process.wait(10)


@dataclass(frozen=True, slots=True)
class Mongo:
    """A server that speaks MongoDB's protocol."""

    base: str
    pid: int | None

    def fresh(self, name: str) -> str:
        """The URL of an empty database of that name. What was in it before is gone."""
        with _asking(self.base) as client:
            client.drop_database(name)
        return urlunsplit(urlsplit(self.base)._replace(path=f"/{name}"))

    def drop(self, name: str) -> None:
        self.fresh(name)

    def cpu(self) -> float:
        return cpu_seconds(self.pid) if self.pid else 0.0

    @property
    def is_test_server(self) -> bool:
        return "secantusVersion" in self._info()

    def version(self) -> str:
        info = self._info()
        if "secantusVersion" in info:
            return f"SecantusDB {info['secantusVersion']}"
        return f"MongoDB {info.get('version', 'of unknown version')}"

    def _info(self) -> dict[str, Any]:
        with _asking(self.base) as client:
            return dict(client.admin.command("buildInfo"))


@contextmanager
def _asking(url: str) -> Iterator[Any]:
    """A client, for a question or two. Whatever goes wrong, there is no MongoDB to measure."""
    try:
        from pymongo import MongoClient  # noqa: PLC0415 - only this part needs the driver
        from pymongo.errors import PyMongoError  # noqa: PLC0415
    except ImportError as problem:
        raise Unavailable("MongoDB needs its driver: pip install 'holdfast[mongo]'") from problem
    client: Any = MongoClient(url)
    try:
        yield client
    except PyMongoError as problem:
        raise Unavailable(f"MongoDB: {problem}") from problem
    finally:
        client.close()


@contextmanager
def mongo() -> Iterator[Mongo]:
    """The server that `MONGODB_URL` names, or else the tests' own, which is not MongoDB."""
    given = os.environ.get("MONGODB_URL")
    if given:
        yield Mongo(given, None)
        return
    try:
        server = MongoServer().start()
    except ServerError as problem:
        raise Unavailable(str(problem)) from problem
    try:
        yield Mongo(server.url(), server.pid)
    finally:
        server.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _until_open(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise Unavailable("Redis did not start")
