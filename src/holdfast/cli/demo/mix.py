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
class DemoKind:
    """One kind of demo task: its share of the mix, how it must end, and a line for the audience."""

    name: str
    share: int
    says: str
    ends: State = State.COMPLETED


SLOW = DemoKind("slow", 10, "take 0.5 to 1.5 s and report progress")
KINDS = (
    DemoKind("fast", 35, "async functions that return at once"),
    SLOW,
    DemoKind("flaky", 10, "fail the first time, succeed when retried"),
    DemoKind(
        "broken", 5, "always fail: retried once, then kept as dead letters", State.DEAD_LETTER
    ),
    DemoKind("booking", 15, "locked: one at a time per account, six accounts"),
    DemoKind("urgent", 5, "high priority: overtake the line"),
    DemoKind("patient", 10, "low priority: let the others go first"),
    DemoKind("primes", 5, "busy with the CPU, each in a process that can be stopped"),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A task still to be submitted."""

    kind: DemoKind
    submit: Callable[[], Awaitable[HasId]]


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """Two acts, the kill between them. The first ends with slow tasks: somebody is busy then."""

    before_kill: list[Planned]
    after_kill: list[Planned]

    @property
    def all(self) -> list[Planned]:
        return [*self.before_kill, *self.after_kill]


def plan(tasks: int, seed: int) -> DemoPlan:
    """So many tasks in random order, the same for the same seed; each kind at least once."""
    draw = random.Random(seed)  # noqa: S311  # a reproducible shuffle, not a secret
    last_of_first_act = [SLOW] * max(6, tasks // 20)
    free = tasks - len(KINDS) - len(last_of_first_act)
    mixed = [*KINDS, *draw.choices(KINDS, weights=[kind.share for kind in KINDS], k=free)]
    draw.shuffle(mixed)
    middle = len(mixed) * 2 // 3
    acts = ([*mixed[:middle], *last_of_first_act], mixed[middle:])
    return DemoPlan(*([Planned(kind, _call(kind.name, draw)) for kind in act] for act in acts))


def _call(name: str, draw: random.Random) -> Callable[[], Awaitable[HasId]]:
    # Imported late: the app reads the demo's settings from the environment when it is made.
    from holdfast.cli import demo_tasks as tasks  # noqa: PLC0415

    n, seconds, account = draw.randrange(10_000), draw.uniform(0.5, 1.5), draw.randrange(6)
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
