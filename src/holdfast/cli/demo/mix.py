"""Which tasks the demo submits: seven kinds in fixed shares, shuffled by a seed."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from holdfast.core.task import State


class HasId(Protocol):
    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of demo task: its share of the mix, how it must end, and a line for the audience."""

    name: str
    share: int
    says: str
    ends: State = State.COMPLETED


KINDS = (
    Kind("fast", 35, "async functions that return at once"),
    Kind("slow", 15, "take 0.5 to 1.5 s and report progress"),
    Kind("flaky", 10, "fail the first time, succeed when retried"),
    Kind("broken", 5, "always fail: retried once, then kept as dead letters", State.DEAD_LETTER),
    Kind("booking", 15, "locked: one at a time per account, six accounts"),
    Kind("urgent", 5, "high priority: overtake the line"),
    Kind("patient", 10, "low priority: let the others go first"),
    Kind("primes", 5, "busy with the CPU, each in a process that can be stopped"),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A task still to be submitted."""

    kind: Kind
    submit: Callable[[], Awaitable[HasId]]


def plan(tasks: int, seed: int) -> list[Planned]:
    """So many tasks in random order, the same for the same seed; each kind at least once."""
    draw = random.Random(seed)  # noqa: S311  # a reproducible shuffle, not a secret
    kinds = list(KINDS[:tasks])
    kinds += draw.choices(KINDS, weights=[kind.share for kind in KINDS], k=tasks - len(kinds))
    draw.shuffle(kinds)
    return [Planned(kind, _call(kind.name, n, draw)) for n, kind in enumerate(kinds)]


def _call(name: str, n: int, draw: random.Random) -> Callable[[], Awaitable[HasId]]:
    # Imported late: the app reads the demo's settings from the environment when it is made.
    from holdfast.cli import demo_tasks as tasks  # noqa: PLC0415

    seconds, account = draw.uniform(0.5, 1.5), draw.randrange(6)
    calls: dict[str, Callable[[], Awaitable[HasId]]] = {
        "fast": lambda: tasks.fast.submit_async(n),
        "slow": lambda: tasks.slow.submit_async(seconds),
        "flaky": lambda: tasks.flaky.submit_async(n),
        "broken": lambda: tasks.broken.submit_async(n),
        "booking": lambda: tasks.booking.submit_async(account, n),
        "urgent": lambda: tasks.urgent.submit_async(n),
        "patient": lambda: tasks.patient.submit_async(n),
        "primes": lambda: tasks.primes.submit_async(3_000_000),
    }
    return calls[name]
