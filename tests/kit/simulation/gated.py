"""What tasks and operators of a simulated world do with gates: few keys, small capacities."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from holdfast.core.gate import Capacity, Count, Gate, GateKind
from holdfast.core.task import NewTask, TaskId

_RATES = {"slow": (1, 30.0), "fast": (2, 5.0)}
_KINDS = (
    GateKind.LATCH,
    GateKind.LATCH,
    GateKind.LIMIT,
    GateKind.LIMIT,
    GateKind.RATE,
    GateKind.SHARE,
    GateKind.BREAKER,
)
_PINNED = ("limit:x", "limit:x", "limit:y", "share:s", "breaker:b", "rate:slow", "rate:fast")


class Gated:
    """Draws gates. `often`: how many of the tasks have some."""

    def __init__(self, rng: Random, often: float) -> None:
        self._rng = rng
        self._often = often
        self._kinds = rng.sample(_KINDS, 2)  # few in one history, so that many meet
        self._ids: list[TaskId] = []  # of tasks that may or may not come to be
        self._groups = 0

    @property
    def is_on(self) -> bool:
        return self._often > 0.0

    def dress(self, new: NewTask) -> NewTask:
        """The task, perhaps with gates."""
        rng = self._rng
        if not self.is_on or rng.random() >= self._often:
            return new
        gates = [self._gate() for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
        unlike = {gate.name: gate for gate in gates}
        counts = (f"latch:{self._group()}",) if rng.random() < 0.3 else ()
        self._ids.append(new.id)
        return new._replace(gates=tuple(unlike.values()), counts=counts)

    def chained(self, batch: Sequence[NewTask]) -> Sequence[NewTask]:
        """Two tasks of which one waits for the other, in any order."""
        if len(batch) < 2 or self._rng.random() >= self._often:
            return batch
        first, second = batch
        second = second._replace(gates=(*second.gates, Gate(GateKind.LATCH, first.id)))
        return (first, second) if self._rng.random() < 0.5 else (second, first)

    def fan(self, tasks: Sequence[NewTask]) -> tuple[Sequence[NewTask], Sequence[Count]]:
        """A new group that the tasks but the last count down, and behind which the last one stands;
        sometimes other counts.
        """
        rng = self._rng
        if not self.is_on:
            return tasks[:1], ()
        if rng.random() < 0.5:
            by = rng.choice((-2, -1, 1))
            counts = [Count(f"latch:{self._group()}", by, int(by < 0))]
            return tasks[:1], counts if rng.random() < 0.6 else ()
        self._groups += 1
        name = f"latch:{self._group(newest=True)}"
        *members, last = (new._replace(unique_key=None, idempotency_key=None) for new in tasks)
        members = [new._replace(counts=(name,)) for new in members]
        last = last._replace(gates=(*last.gates, Gate(GateKind.LATCH, name[6:])))
        counts = [Count(name, max(1, len(members)))]
        return (last, *members) if rng.random() < 0.5 else (*members, last), counts

    def group(self, tasks: Sequence[NewTask]) -> tuple[str, Sequence[NewTask], Sequence[Count]]:
        """A new group that all of these count down; or one that is there, and none of them."""
        if self._rng.random() < 0.3:
            return f"latch:{self._group()}", (), ()
        self._groups += self._rng.random() < 0.7
        name = f"latch:{self._group(newest=True)}"
        unkeyed = (new._replace(unique_key=None, idempotency_key=None) for new in tasks)
        return name, [new._replace(counts=(name,)) for new in unkeyed], [Count(name, len(tasks))]

    def capacity(self, busy: Sequence[str]) -> Capacity:
        """An operator's word on a gate, mostly on one before which somebody stands."""
        rng = self._rng
        names = busy if busy and rng.random() < 0.7 else _PINNED
        return Capacity(rng.choice(names), rng.choice((None, None, 0, 1, 2, 3)))

    def _gate(self) -> Gate:
        rng = self._rng
        match kind := rng.choice(self._kinds):
            case GateKind.LATCH if self._ids and rng.random() < 0.7:
                return Gate(kind, rng.choice(self._ids[-4:]))
            case GateKind.LATCH:
                return Gate(kind, self._group())
            case GateKind.RATE:
                key = rng.choice(tuple(_RATES))
                return Gate(kind, key, *_RATES[key])
            case GateKind.LIMIT:
                return Gate(kind, rng.choice("xxxy"), rng.choice((1, 1, 1, 2)))
            case GateKind.SHARE:
                return Gate(kind, "s", rng.choice((1, 2)), head_start=600_000_000)
            case _:
                return Gate(kind, "b", rng.choice((1, 2)))

    def _group(self, *, newest: bool = False) -> str:
        least = self._groups if newest else max(0, self._groups - 1)
        return f"group{self._rng.randint(least, self._groups)}"
