"""One run: what was asked of it, its servers, and what the part under way has found."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench import servers
from bench.environments import Unavailable
from bench.machine import Watch
from bench.peers.match import Arena
from bench.samples import Samples
from bench.servers import Mongo, Postgres, Redis
from bench.size import Size


@dataclass(slots=True, kw_only=True)
class Run:
    """Servers start when a part first asks for them, and end with the run."""

    chosen: frozenset[str]
    size: Size
    long: bool
    stack: ExitStack
    samples: Samples = field(default_factory=lambda: Samples(Watch()))
    versions: list[str] = field(default_factory=list)
    """Of what the part under way was measured on."""
    _postgres: Postgres | None = None
    _redis: Redis | None = None
    _mongo: Mongo | None = None

    def begin(self) -> None:
        """A new part: nothing found yet. The servers that run are still ours."""
        self.samples = Samples(Watch(servers=self.samples.watch.servers))
        self.versions = []

    def postgres(self) -> Postgres:
        if self._postgres is None:
            self._postgres = self.stack.enter_context(servers.postgres())
            self._ours(self._postgres.pid)
        self._note(self._postgres.version())
        return self._postgres

    def redis(self) -> Redis:
        """Raises `Unavailable` where there is none for this system."""
        if self._redis is None:
            folder = tempfile.TemporaryDirectory(prefix="holdfast-bench-")
            path = Path(self.stack.enter_context(folder))
            self._redis = self.stack.enter_context(servers.redis(path))
            self._ours(self._redis.pid)
        self._note(self._redis.version())
        return self._redis

    def mongo(self) -> Mongo:
        """Raises `Unavailable` where there is none."""
        if self._mongo is None:
            self._mongo = self.stack.enter_context(servers.mongo())
            self._ours(self._mongo.pid)
        self._note(self._mongo.version())
        return self._mongo

    def arena(self, needed: frozenset[str]) -> Arena:
        """The servers of these kinds. Where there is no Redis, its peers are noted as failed."""
        postgres = self.postgres() if "postgres" in needed else None
        redis = None
        if "redis" in needed:
            try:
                redis = self.redis()
            except Unavailable as problem:
                self.samples.failures["Redis"] = {"all its peers": str(problem)}
        return Arena(postgres, redis)

    def _ours(self, pid: int | None) -> None:
        if pid is not None:
            self.samples.watch.servers.add(pid)

    def _note(self, version: str) -> None:
        if version not in self.versions:
            self.versions.append(version)
