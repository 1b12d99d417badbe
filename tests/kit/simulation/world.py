"""Time, processes and their interleaving, all drawn from one seeded generator.

An actor is a coroutine that gives up control at every store call and every sleep. The world picks
who goes on, lets time pass, stops processes and kills them. No event loop, no threads: a history
is a pure function of its seed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from random import Random
from typing import Any

from tests.kit.simulation.gated import Gated

Live = Coroutine[float, None, None]


class SimClock:
    """The store's wall clock and everybody's monotonic clock. Only the wall clock ever jumps."""

    __slots__ = ("mono", "wall_us")

    def __init__(self) -> None:
        self.mono = 0.0
        self.wall_us = 1_800_000_000_000_000

    def now_us(self) -> int:
        return self.wall_us

    def advance(self, seconds: float) -> None:
        self.mono += seconds
        self.wall_us += round(seconds * 1_000_000)

    def jump(self, seconds: float) -> None:
        """Somebody set the clock, or the machine slept: the wall time moves, nothing else."""
        self.wall_us += round(seconds * 1_000_000)


class Until(Awaitable[None]):
    """Give up control until the monotonic clock shows at least this."""

    __slots__ = ("_at",)

    def __init__(self, at: float) -> None:
        self._at = at

    def __await__(self) -> Generator[float, None, None]:
        yield self._at


class Process:
    """What a signal hits: a worker with its heartbeat and bodies, or one submitter."""

    def __init__(self) -> None:
        self.alive = True
        self.stopped_until = 0.0


class _Actor:
    __slots__ = ("live", "process", "wake_at")

    def __init__(self, process: Process, live: Live) -> None:
        self.process = process
        self.live = live
        self.wake_at = 0.0


class World:
    """Steps one actor at a time."""

    def __init__(self, rng: Random, *, gates: bool) -> None:
        self.rng = rng
        self.gated = Gated(rng, rng.choice((0.0, 0.3, 0.8)) if gates else 0.0)
        self.clock = SimClock()
        self.steps = 0
        self.is_healing = False  # long work becomes short, so that a history ends soon
        self._actors: list[_Actor] = []

    def spawn(self, process: Process, live: Coroutine[Any, Any, None]) -> None:
        self._actors.append(_Actor(process, live))

    def sleep(self, seconds: float) -> Until:
        return Until(self.clock.mono + seconds)

    def kill(self, process: Process) -> None:
        """SIGKILL: nothing of it runs again. The actor that asks for its own death dies at its next
        switch.
        """
        process.alive = False

    def stop(self, process: Process, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after this time."""
        process.stopped_until = self.clock.mono + seconds

    def step(self) -> None:
        """Let one actor go on to its next switch, or let time pass."""
        self.steps += 1
        now = self.clock.mono
        ready = [a for a in self._actors if a.wake_at <= now and a.process.stopped_until <= now]
        if not ready or self.rng.random() < 0.1:
            self._pass_time(now)
            return
        actor = ready[int(self.rng.random() * len(ready))]
        if not actor.process.alive:
            self._bury(actor)
            return
        try:
            actor.wake_at = actor.live.send(None)
        except StopIteration:
            self._actors.remove(actor)

    def end(self) -> None:
        """Close whatever still lives, so that nothing is left to the garbage collector."""
        for actor in self._actors:
            actor.live.close()
        self._actors.clear()

    def _bury(self, actor: _Actor) -> None:
        actor.live.close()
        self._actors.remove(actor)

    def _pass_time(self, now: float) -> None:
        pending = [max(a.wake_at, a.process.stopped_until) for a in self._actors]
        nearest = min((at for at in pending if at > now), default=now + 1.0)
        self.clock.advance(min(nearest - now, 1.0 + 4.0 * self.rng.random()) + 1e-6)
