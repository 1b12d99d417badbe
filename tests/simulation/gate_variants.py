"""Stores whose gates are broken on purpose, each in one way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from holdfast.core.attempt import Refusal, Settlement
from holdfast.core.gate import Capacity, Count, Gate, GateKind, kind_of, to_pass
from holdfast.core.passing import GateRow, Line, Parked
from holdfast.core.query import TaskFilter
from holdfast.core.task import Reason, State, Task, TaskId
from holdfast.ports.clock import Clock
from holdfast.stores.callees import tell_nobody
from holdfast.stores.memory import MemoryStore
from holdfast.stores.memory.gates import Gates
from holdfast.stores.memory.places import Places
from holdfast.stores.values import as_time, in_us

EPOCH = as_time(0)


class BrokenGates(MemoryStore):
    """The store in memory with gates of this kind."""

    kind: type[Gates]

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(clock=clock)
        self._places.gates = self.kind(self._places)


class OneMorePasses(BrokenGates):
    class Row(GateRow):
        __slots__ = ()

        @property
        def allowed(self) -> int:
            return (self.capacity if self.pinned is None else self.pinned) + 1

    class kind(Gates):  # noqa: N801
        def _row(self, name: str, now: int) -> GateRow | None:
            row = super()._row(name, now)
            if row is not None and row.kind is GateKind.LIMIT:
                row.__class__ = OneMorePasses.Row
            return row


class CancelledHoldersStay(BrokenGates):
    """A leak: a task that never started does not let go."""

    class kind(Gates):  # noqa: N801
        def let_go(self, task: Task, *, started: bool) -> set[str]:
            return super().let_go(task, started=True) if started else set()


class KeepsWhatItPassed(BrokenGates):
    """A leak: who leaves the line of a gate does not let go of those behind it."""

    class kind(Gates):  # noqa: N801
        def unpark(self, task: Task) -> set[str]:
            if task.id in self._passed:
                self._take_out(self._parked_as(task))
            return set()


class LetsGoTwice(BrokenGates):
    class kind(Gates):  # noqa: N801
        def _release(self, task: Task, gates: Iterable[Gate]) -> set[str]:
            for gate in gates:
                self._rows.setdefault(gate.name, GateRow(gate.name, gate.capacity)).held -= 1
            return super()._release(task, gates)


class ForgetsStarts(BrokenGates):
    class kind(Gates):  # noqa: N801
        def start(self, task: Task, now: int) -> None:
            super().start(task, now)
            for gate in task.gates:
                if gate.kind is GateKind.RATE:
                    self._rows[gate.name].starts.clear()


class CountsStartsAtTheEnd(BrokenGates):
    """A start counts from the end of its attempt."""

    class kind(Gates):  # noqa: N801
        def start(self, task: Task, now: int) -> None:
            for row in self._rates(task):
                row.held, row.look_at = row.held - 1, now

        def let_go(self, task: Task, *, started: bool) -> set[str]:
            for row in self._rates(task) if started else ():
                row.starts.append((1, in_us(task.started_at or EPOCH)))
            return super().let_go(task, started=started)

        def _rates(self, task: Task) -> list[GateRow]:
            names = [gate.name for gate in task.gates if gate.kind is GateKind.RATE]
            return [self._rows[name] for name in names if name in self._rows]


class OpensTooEarly(BrokenGates):
    """A latch opens when one is left."""

    class kind(Gates):  # noqa: N801
        def count(self, counts: Iterable[Count], now: int, behind: str | None = None) -> set[str]:
            touched = super().count(counts, now, behind)
            for name in touched:
                row = self._rows[name]
                if row.left == 1 and any(c.latch == name and c.by < 0 for c in counts):
                    row.count(-1, 0, now)
            return touched


class CancelsOpenNothing(BrokenGates):
    """A latch does not hear that a task was cancelled."""

    class kind(Gates):  # noqa: N801
        def count_end(self, task: Task, now: int) -> set[str]:
            return set() if task.state is State.CANCELLED else super().count_end(task, now)


class CountsARequeuedTaskOnce(BrokenGates):
    """A group does not wait for a task that was started again."""

    class kind(Gates):  # noqa: N801
        def count_again(self, task: Task) -> None:
            super().count_again(replace(task, counts=()))


class StandsBehindNothing(MemoryStore):
    """A task that waits for others goes on at once."""

    def _settle(self, task: Task, settlement: Settlement, now: int) -> Sequence[Refusal]:
        return super()._settle(task, settlement._replace(behind=None), now)


class OpenForGood(BrokenGates):
    """Who is to stand behind a latch that has opened goes on at once, whatever is counted."""

    class kind(Gates):  # noqa: N801
        def count(self, counts: Iterable[Count], now: int, behind: str | None = None) -> set[str]:
            return super().count(counts, now)


class HurriesOnlyRetries(MemoryStore):
    async def requeue(
        self,
        where: TaskFilter,
        *,
        limit: int,
        head_starts: Mapping[str, int],
        pace: float | None = None,
    ) -> Sequence[Task]:
        states = frozenset(State if where.states is None else where.states) - {State.QUEUED}
        some = replace(where, states=states)
        return await super().requeue(some, limit=limit, head_starts=head_starts, pace=pace)


class ByAgeBehindShares(BrokenGates):
    """Who has much to do goes first for as long as it takes."""

    class kind(Gates):  # noqa: N801
        def _pass(self, parked: Parked) -> None:
            super()._pass(parked._replace(rank=self._places.tasks[parked.id].rank))


class ByArrival(BrokenGates):
    """Whoever comes first passes first."""

    class kind(Gates):  # noqa: N801
        def __init__(self, places: Places) -> None:
            super().__init__(places)
            self._came: dict[TaskId, int] = {}
            self._clock = count()

        def park(self, parked: Parked) -> str:
            self._came[parked.id] = next(self._clock)
            return super().park(parked)

        def _line(self, name: str, now: int) -> Line | None:
            line = super()._line(name, now)
            if line is None or kind_of(name) is GateKind.LOCK:
                return line
            ids: list[TaskId] = [task_id for _, task_id in self._parked.get(name, ())]
            first = sorted(ids, key=self._came.__getitem__)[: line.gate.room(now) + 1]
            return line._replace(parked=[self._parked_as(self._places.tasks[i]) for i in first])


class RaisedForNobody(BrokenGates):
    """A raised capacity is for those who come later."""

    class kind(Gates):  # noqa: N801
        def set_capacities(self, capacities: Iterable[Capacity]) -> set[str]:
            super().set_capacities(capacities)
            return {name for name, capacity in capacities if capacity is None}


class DeafToNewSubmits(BrokenGates):
    """The first submit's capacity stays."""

    class kind(Gates):  # noqa: N801
        def announce(self, gates: Iterable[Gate]) -> set[str]:
            return set()


class HoldsWhileItWaits(BrokenGates):
    """Latches are passed last, with the other gates in hand."""

    class kind(Gates):  # noqa: N801
        def park(self, parked: Parked) -> str:
            return super().park(parked._replace(gates=_latches_last(parked.gates)))

        def _parked_as(self, task: Task) -> Parked:
            parked = super()._parked_as(task)
            return parked._replace(gates=_latches_last(parked.gates))


class OvertakesTheRunning(BrokenGates):
    class kind(Gates):  # noqa: N801
        def _that_may_be_overtaken(self, holder: Task) -> Parked | None:
            gates = to_pass(holder.lock, holder.gates)
            return Parked(holder.rank, holder.id, gates, len(gates))


class OvertakesNobody(BrokenGates):
    class kind(Gates):  # noqa: N801
        def _that_may_be_overtaken(self, holder: Task) -> Parked | None:
            return None


class NeverLooksAgain(BrokenGates):
    """Time opens no rate."""

    class kind(Gates):  # noqa: N801
        def to_look_at(self, now: int) -> set[str]:
            return set()


class PromisesRatesTooLate(BrokenGates):
    class kind(Gates):  # noqa: N801
        def next_look(self) -> int | None:
            return None


class CancelsTellNobody(MemoryStore):
    async def cancel(
        self, where: TaskFilter, *, limit: int, reason: Reason = Reason.CANCELLED
    ) -> Sequence[Task]:
        told, self.passed_on = self.passed_on, tell_nobody
        changed = await super().cancel(where, limit=limit, reason=reason)
        self.passed_on = told
        return changed


def _latches_last(gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
    return tuple(sorted(gates, key=lambda gate: gate.kind is GateKind.LATCH))
