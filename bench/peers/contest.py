"""Measures one peer, from outside: how fast it takes tasks, runs them, picks one up, and idles."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from bench.environments import Unavailable
from bench.machine import cpu_seconds
from bench.peers import bodies
from bench.peers.match import Arena, Match, match
from bench.peers.roster import Commands, Peer
from bench.servers import ask
from holdfast.cli.processes import usage

DRAIN_PATIENCE = 60.0
START_PATIENCE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """One drain: its speed, and what a task cost the workers and the server (submit included)."""

    per_second: float
    worker_cpu_us: float
    server_cpu_us: float
    wal_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A worker that has nothing to do, and then one task at a time."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    tasks: int
    cpu_percent: float
    server_cpu_percent: float
    rss_mib: float
    pss_mib: float
    processes: int


def submit_rate(peer: Peer, arena: Arena, *, share: float = 1.0, callers: int = 1) -> float:
    """Tasks per second, one call each."""
    count = int(peer.submitted * share) // callers * callers
    with match(peer, arena) as one:
        return count / float(one.call("submit", count, callers))


def bulk_rate(peer: Peer, arena: Arena, *, share: float = 1.0) -> float:
    """Tasks per second by the peer's call for many."""
    count = int(max(peer.drained, 5_000) * share)
    with match(peer, arena) as one:
        return count / float(one.call("bulk", count))


def drain(
    peer: Peer, arena: Arena, commands: Commands, *, results: bool = False, share: float = 1.0
) -> Drained:
    """From the first body to the last, or to the last finished row where the peer keeps one."""
    ticks = int(peer.drained * share) // peer.tick_every
    count = ticks * peer.tick_every
    with match(peer, arena, results=results) as one:
        cpu, wal = arena.cpu(peer), arena.wal(peer)
        one.call("bulk" if peer.bulk else "fill", count)
        if url := one.variables.get("BENCH_POSTGRES"):
            ask(
                url, "ANALYZE"
            )  # as autovacuum would have; plans on no statistics are no peer's best
        with one.workers(commands) as workers:
            one.until(bodies.TICKS, bodies.TICK.size, workers, START_PATIENCE)
            started_cpu = _cpu(workers)
            one.until(bodies.TICKS, ticks * bodies.TICK.size, workers, DRAIN_PATIENCE)
            ended = None
            if results or peer.keeps == "state":
                ended = _until_stored(one, count)
            worker_cpu = _cpu(workers) - started_cpu
        first, last = one.ticks()
        return Drained(
            per_second=count / ((ended or last) - first),
            worker_cpu_us=worker_cpu / count * 1e6,
            server_cpu_us=(arena.cpu(peer) - cpu) / count * 1e6,
            wal_bytes=None if wal is None else ((arena.wal(peer) or 0) - wal) / count,
        )


def composed(peer: Peer, arena: Arena, kind: str, count: int) -> float:
    """Parts per second of one composition, results kept, from its first start to its end."""
    with match(peer, arena, results=True) as one:
        one.call("compose", kind, count)
        with one.workers(peer.one) as workers:
            one.until(bodies.TICKS, bodies.TICK.size, workers, START_PATIENCE)
            one.until(bodies.TICKS, (count + 1) * bodies.TICK.size, workers, DRAIN_PATIENCE)
        first, last = one.ticks()
        return count / (last - first)


def _until_stored(one: Match, count: int) -> float | None:
    """When the peer's store had them all; None if that was so at the first look."""
    seen = one.call("finished", count, 20)
    if seen["finished"] < count:
        raise Unavailable(f"its store shows {seen['finished']:.0f} of {count} tasks as finished")
    return float(seen["at"]) if seen["looks"] > 1 else None


def live(peer: Peer, arena: Arena, tasks: int, window: float) -> Live:
    """The peer's usual worker: idle for `window` seconds, then `tasks` one at a time."""
    with match(peer, arena) as one, one.workers(peer.usual) as workers:
        one.call("send", 1, START_PATIENCE)
        one.until(bodies.STAMPS, bodies.STAMP.size, workers, 1.0)
        time.sleep(2.0)  # its start-up is not idleness
        idle = _idle(workers, peer, arena, window)
        one.call("send", tasks, 10.0)
        data = (one.folder / bodies.STAMPS).read_bytes()
    waits = [(started - sent) * 1000 for sent, started in bodies.STAMP.iter_unpack(data)][1:]
    if len(waits) < 2:
        raise Unavailable("it picked up fewer than two tasks in time")
    cuts = quantiles(waits, n=100, method="inclusive")
    return Live(p50_ms=cuts[49], p95_ms=cuts[94], p99_ms=cuts[98], tasks=len(waits), **idle)


def _idle(
    workers: list[subprocess.Popen[bytes]], peer: Peer, arena: Arena, window: float
) -> dict[str, Any]:
    before, server, began = _cpu(workers), arena.cpu(peer), time.monotonic()
    time.sleep(window)
    passed = time.monotonic() - began
    held = [use for worker in workers if (use := usage(worker.pid))]
    return {
        "cpu_percent": 100 * (_cpu(workers) - before) / passed,
        "server_cpu_percent": 100 * (arena.cpu(peer) - server) / passed,
        "rss_mib": sum(use.rss_mib for use in held),
        "pss_mib": sum(use.pss_mib for use in held),
        "processes": sum(use.processes for use in held),
    }


def _cpu(workers: list[subprocess.Popen[bytes]]) -> float:
    return cpu_seconds(*(worker.pid for worker in workers))
