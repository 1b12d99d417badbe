"""Measures the ways to wake a worker, in rounds, taking turns."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from bench.dispatch.ways import WAYS, Way
from bench.environments import Unavailable
from bench.machine import Watch, cpu_seconds
from bench.peers import bodies, contest
from bench.peers.contest import START_PATIENCE, Drained
from bench.peers.match import Arena, Match, match
from bench.size import Size

CALLERS = 8
STREAM = 8_000
STREAM_PATIENCE = 60.0


class Use(NamedTuple):
    """What servers and workers have used so far, or between two looks: seconds and bytes."""

    at: float
    postgres: float
    redis: float
    workers: float
    wal: float

    @classmethod
    def between(cls, before: Self, after: Self) -> Self:
        return cls(*(late - early for early, late in zip(before, after, strict=True)))


@dataclass(frozen=True, slots=True)
class Meter:
    """Reads what servers and workers have used."""

    arena: Arena
    workers: Sequence[subprocess.Popen[bytes]]

    def read(self, *, ending: bool = False) -> Use:
        """To ask for the log costs the server a connection; that is outside of what is compared."""
        server = self.arena.postgres
        assert server is not None
        wal = None if ending else server.wal()
        redis = self.arena.redis.cpu() if self.arena.redis else 0.0
        workers = cpu_seconds(*(worker.pid for worker in self.workers))
        at, postgres = time.time(), server.cpu()
        return Use(at, postgres, redis, workers, server.wal() if wal is None else wal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """Single submits by several callers at once, while a worker runs them."""

    per_second: float
    postgres_us: float
    redis_us: float
    wal_bytes: float


@dataclass(slots=True)
class Found:
    """What all rounds have found about one way. Times in seconds."""

    waits: list[float] = field(default_factory=list)
    """From the submit call to the body's first line."""
    singles: list[Use] = field(default_factory=list)
    """Of the tasks behind `waits`, a round each."""
    idles: list[Use] = field(default_factory=list)
    streams: list[Streamed] = field(default_factory=list)
    drains: list[Drained] = field(default_factory=list)


def measure(arena: Arena, size: Size, watch: Watch) -> tuple[dict[str, Found], dict[str, str]]:
    """What was found by way, and why the others could not be measured."""
    found: dict[str, Found] = {way.title: Found() for way in WAYS}
    failures: dict[str, str] = {}
    for number in range(1, size.rounds + 1):
        print(f"dispatch: round {number} of {size.rounds}", file=sys.stderr, flush=True)
        for way in WAYS:
            if way.title in failures:
                continue
            try:
                with watch.watching():
                    one_round(way, arena, size, found[way.title], idle=number == 1)
            except Unavailable as problem:
                failures[way.title] = str(problem)
                print(f"  {way.title}: {problem}", file=sys.stderr, flush=True)
    return {title: one for title, one in found.items() if title not in failures}, failures


def one_round(way: Way, arena: Arena, size: Size, found: Found, *, idle: bool) -> None:
    """Everything once, for one way; of raw SQL the pick-up alone."""
    one_at_a_time(way, arena, size, found, idle=idle and way.mode is not None)
    if way.mode is None:
        return
    found.streams.append(stream(way, arena, int(STREAM * size.share)))
    found.drains.append(contest.drain(way.peer, arena, way.peer.one, share=size.share))


def one_at_a_time(way: Way, arena: Arena, size: Size, found: Found, *, idle: bool = True) -> None:
    """The usual worker, idle and then with single tasks at random moments."""
    with match(way.peer, arena) as one, one.workers(way.peer.usual) as workers:
        _ready(way, one, workers)
        meter = Meter(arena, workers)
        if idle:
            before = meter.read()
            time.sleep(size.idle_seconds)
            found.idles.append(Use.between(before, meter.read(ending=True)))
        before = meter.read()
        one.call("send", size.pick_ups, 10.0)
        found.singles.append(Use.between(before, meter.read(ending=True)))
        data = (one.folder / bodies.STAMPS).read_bytes()
    stamps = list(bodies.STAMP.iter_unpack(data))[1:]
    if len(stamps) < size.pick_ups:
        raise Unavailable(f"{len(stamps)} of {size.pick_ups} tasks were picked up in time")
    found.waits += [started - sent for sent, started in stamps]


def stream(way: Way, arena: Arena, count: int) -> Streamed:
    """From the first submit to the last stored end."""
    count = count // CALLERS * CALLERS
    with match(way.peer, arena) as one, one.workers(way.peer.one) as workers:
        _ready(way, one, workers)
        meter = Meter(arena, workers)
        before = meter.read()
        one.call("submit", count, CALLERS)
        seen = one.call("finished", count + 1, STREAM_PATIENCE)
        used = Use.between(before, meter.read(ending=True))
    if seen["finished"] < count + 1:
        raise Unavailable(f"{seen['finished']:.0f} of {count} tasks finished in time")
    return Streamed(
        per_second=count / (seen["at"] - before.at),
        postgres_us=used.postgres / count * 1e6,
        redis_us=used.redis / count * 1e6,
        wal_bytes=used.wal / count,
    )


def _ready(way: Way, one: Match, workers: list[subprocess.Popen[bytes]]) -> None:
    """Until the worker has run a task and sleeps; woken in the way that is to be measured."""
    one.call("send", 1, START_PATIENCE)
    one.until(bodies.STAMPS, bodies.STAMP.size, workers, 1.0)
    mode = one.call("mode") if way.mode else None
    if mode != way.mode:
        raise Unavailable(f"its wake-ups travel by {mode}, not by {way.mode}")
    time.sleep(2.0)  # its start-up is not idleness
