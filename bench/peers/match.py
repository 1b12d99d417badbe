"""One sample of one peer: its driver and its workers, started in its own environment and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.environments import ROOT, Unavailable, environment
from bench.peers import bodies
from bench.peers.roster import Command, Commands, Peer
from bench.servers import Mongo, Postgres, Redis

DATABASE = "bench_peer"
PATIENCE = 120.0
"""Seconds that a driver may take for one request."""


@dataclass(frozen=True, slots=True)
class Arena:
    """The servers that peers are measured on."""

    postgres: Postgres | None = None
    redis: Redis | None = None
    mongo: Mongo | None = None

    def fresh(self, peer: Peer, folder: Path) -> dict[str, str]:
        """The environment variables that lead a peer to its own, empty server."""
        match peer.server:
            case "postgres":
                if self.postgres is None:
                    raise Unavailable("there is no PostgreSQL here")
                redis = self._fresh_redis() if peer.wakes == "redis" else {}
                return {"BENCH_POSTGRES": self.postgres.fresh(DATABASE), **redis}
            case "redis":
                return self._fresh_redis()
            case "mongo":
                if self.mongo is None:
                    raise Unavailable("there is no MongoDB here")
                return {"BENCH_MONGO": self.mongo.fresh(DATABASE)}
            case "file":
                return {"BENCH_SQLITE": str(folder)}

    def _fresh_redis(self) -> dict[str, str]:
        if self.redis is None:
            raise Unavailable("there is no Redis here")
        return {"BENCH_REDIS": self.redis.fresh()}

    def cpu(self, peer: Peer) -> float:
        """Processor seconds that the peer's server has used so far."""
        servers = {"postgres": self.postgres, "redis": self.redis, "mongo": self.mongo}
        server = servers.get(peer.server)
        return server.cpu() if server else 0.0

    def wal(self, peer: Peer) -> int | None:
        return self.postgres.wal() if self.postgres and peer.server == "postgres" else None


class Match:
    """One sample of one peer, on an empty server; leaves nothing running."""

    def __init__(self, peer: Peer, arena: Arena, folder: Path, *, results: bool = False) -> None:
        self.peer, self.arena, self.folder = peer, arena, folder
        commands = environment(peer.driver)
        self.variables = {
            **{key: value for key, value in os.environ.items() if not key.startswith("BENCH_")},
            **arena.fresh(peer, folder),
            **dict(peer.variables),
            "BENCH_WAKES": peer.wakes,
            "BENCH_MARKS": str(folder),
            "BENCH_RESULTS": "1" if results else "0",
            "BENCH_EVERY": str(peer.tick_every),
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
            # RQ's command knows its server only by this name.
            "RQ_REDIS_URL": arena.redis.url if arena.redis else "",
        }
        self.log = (folder / "log").open("ab")
        self.driver = subprocess.Popen(
            [str(commands / "python"), "-m", "bench.peers.drive", peer.driver],
            cwd=folder,
            env=self.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def call(self, verb: str, *arguments: float | str) -> Any:
        """Have the driver do something; its answer."""
        assert self.driver.stdin is not None
        assert self.driver.stdout is not None
        watchdog = threading.Timer(PATIENCE, self.driver.kill)
        watchdog.start()
        with suppress(BrokenPipeError):
            print(json.dumps([verb, *arguments]), file=self.driver.stdin, flush=True)
        line = self.driver.stdout.readline()
        watchdog.cancel()
        answer = json.loads(line) if line else {"error": self.last_words()}
        if isinstance(answer, dict) and "error" in answer:
            raise Unavailable(f"{verb}: {answer['error']}"[:300])
        return answer

    def close(self) -> None:
        self.driver.kill()
        self.driver.communicate()
        self.log.close()

    @contextmanager
    def workers(self, commands: Commands) -> Iterator[list[subprocess.Popen[bytes]]]:
        """The peer's workers, each in a session of its own, so that nothing of it is left."""
        started = [self._start(command) for command in commands]
        try:
            yield started
        finally:
            stop(started)

    def _start(self, command: Command) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )

    def until(
        self, name: str, size: int, workers: list[subprocess.Popen[bytes]], patience: float
    ) -> None:
        """Wait until a file of marks is so long."""
        path, deadline = self.folder / name, time.monotonic() + patience
        while not path.exists() or path.stat().st_size < size:
            if all(worker.poll() is not None for worker in workers):
                raise Unavailable(f"its worker ended: {self.last_words()}")
            if time.monotonic() > deadline:
                seen = path.stat().st_size if path.exists() else 0
                raise Unavailable(f"{seen / size:.0%} of the tasks ran within {patience:.0f} s")
            time.sleep(0.005)

    def ticks(self) -> tuple[float, float]:
        """When the first and the last task started, of those that tell."""
        data = (self.folder / bodies.TICKS).read_bytes()
        times = [time for (time,) in bodies.TICK.iter_unpack(data)]
        return min(times), max(times)

    def last_words(self) -> str:
        lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "no message"


def stop(workers: list[subprocess.Popen[bytes]]) -> None:
    """End workers: asked first, then with all that they have started."""
    for worker in workers:
        worker.terminate()
    deadline = time.monotonic() + 5
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(max(0.0, deadline - time.monotonic()))
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


@contextmanager
def match(peer: Peer, arena: Arena, *, results: bool = False) -> Iterator[Match]:
    """One sample's driver, in a folder of its own: in memory, unless the queue is a file there."""
    memory = Path("/dev/shm")
    where = memory if peer.server != "file" and memory.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=where) as name:
        one = Match(peer, arena, Path(name), results=results)
        try:
            one.call("install")
            one.call("open")
            yield one
        finally:
            one.close()
