"""One server for a whole test session, however many processes take part in it.

The session's main process owns them: it hands `address` to its helpers (xdist workers), ends what
was started when it ends, and if it is killed the servers' guards see that. A server starts when the
first test asks for it; a file lock makes the others wait for that start.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.kit.servers.binaries import Version
from tests.kit.servers.mongo import GivenMongo, MongoServer, memory_folder
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.redis import RedisServer


class SharedServers:
    """The servers of one session, as one of its processes sees them."""

    def __init__(self, folder: Path, owner: int) -> None:
        self._folder = folder
        self._owner = owner

    @classmethod
    def of_this_process(cls) -> Self:
        """For the main process. Nothing is made before somebody asks."""
        name = f"holdfast-test-{os.getpid()}-{secrets.token_hex(4)}"
        return cls(Path(tempfile.gettempdir(), name), os.getpid())

    @classmethod
    def at(cls, address: tuple[str, int]) -> Self:
        """For its helpers."""
        return cls(Path(address[0]), address[1])

    @property
    def address(self) -> tuple[str, int]:
        return str(self._folder), self._owner

    def postgres(self, version: Version = 18) -> PostgresServer:
        """The session's PostgreSQL of that version, running."""
        self._folder.mkdir(exist_ok=True)
        self._folder.chmod(0o711)  # the server's account may walk in, nobody may look around
        with self._locked(f"pg{version}.lock"):
            return self._server(version).start()

    def mongo(self) -> MongoServer | GivenMongo:
        """The session's MongoDB, running; or the one that `MONGODB_URL` names."""
        if given := os.environ.get("MONGODB_URL"):
            return GivenMongo(given)
        self._folder.mkdir(exist_ok=True)
        with self._locked("mongo.lock"):
            return MongoServer(self._mongo_folder, owner=self._owner).start()

    def redis(self) -> RedisServer:
        """The session's Redis, running."""
        self._folder.mkdir(exist_ok=True)
        self._folder.chmod(0o711)
        with self._locked("redis.lock"):
            return RedisServer(self._folder / "redis", owner=self._owner).start()

    def close(self) -> None:
        """End whatever runs, and remove all of it."""
        if not self._folder.exists():
            return
        with self._locked("redis.lock"):
            if (self._folder / "redis").exists():
                RedisServer(self._folder / "redis", owner=self._owner).close()
        with self._locked("mongo.lock"):
            if self._mongo_folder.exists():
                MongoServer(self._mongo_folder, owner=self._owner).close()
        for version in (18, 16):
            with self._locked(f"pg{version}.lock"):
                if (self._folder / f"pg{version}").exists():
                    self._server(version).close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _server(self, version: Version) -> PostgresServer:
        return PostgresServer(self._folder / f"pg{version}", version, owner=self._owner)

    @property
    def _mongo_folder(self) -> Path:
        return memory_folder() / f"{self._folder.name}-mongo"

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with (self._folder / name).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
