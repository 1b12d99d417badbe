"""Gates in memory: who stands before which, and what is known of each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.core.gate import (
    Capacity,
    Count,
    Gate,
    GateKind,
    GateState,
    key_of,
    kind_of,
    latch_of,
    to_pass,
)
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.passing import GateRow, Line, Parked, let_pass, next_stage, state_of
from holdfast.core.task import State, Task, TaskId
from holdfast.stores.memory.sorted_ids import SortedIds
from holdfast.stores.values import span_us

if TYPE_CHECKING:
    from holdfast.stores.memory.places import Places


class Gates:
    """All gates of one store. Locks have no row: who holds them is all there is to know."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._rows: dict[str, GateRow] = {}
        self._parked: dict[str, SortedIds] = {}
        self._passed: dict[TaskId, int] = {}  # how many gates a parked task has behind it
        self.holders: dict[str, TaskId] = {}  # of locks, by gate
        self.passed_on: dict[TaskId, None] = {}  # who is ready since they were last asked for

    # Coming and going; each answers the gates that it touches.

    def park(self, parked: Parked) -> str:
        name = parked.gates[parked.passed].name
        self._passed[parked.id] = parked.passed
        self._parked.setdefault(name, SortedIds()).add(parked.rank, parked.id)
        return name

    def unpark(self, task: Task) -> set[str]:
        """A task that stands before a gate leaves, and lets go of those behind it."""
        if task.id not in self._passed:
            return set()
        parked = self._parked_as(task)
        name = parked.gates[parked.passed].name
        self._take_out(parked)
        return self._release(task, parked.gates[: parked.passed]) | {name}

    def let_go(self, task: Task, *, started: bool) -> set[str]:
        """A ready or running task leaves."""
        gates = to_pass(task.lock, task.gates)
        held = [gate for gate in gates if not (started and gate.kind is GateKind.RATE)]
        return self._release(task, held)

    def start(self, task: Task, now: int) -> None:
        """A ready task begins to run: a rate counts starts."""
        for gate in task.gates:
            if gate.kind is GateKind.RATE:
                self._rows[gate.name].start(1, now)

    def count_end(self, task: Task, now: int) -> set[str]:
        """A task has ended: its own latch opens, those that it names count down."""
        failed = int(task.state is not State.COMPLETED)
        return self.count(
            [Count(name, -1, failed) for name in (latch_of(task.id), *task.counts)], now
        )

    def count(self, counts: Iterable[Count], now: int, behind: str | None = None) -> set[str]:
        """Count latches. The one that somebody is to stand `behind` is closed by that."""
        touched = set()
        for latch, by, failed in counts:
            if by > 0:
                self._rows.setdefault(latch, GateRow(latch))
            if row := self._rows.get(latch):
                if latch == behind:
                    row.close()
                row.count(by, failed, now)
                touched.add(latch)
        return touched

    def count_again(self, task: Task) -> None:
        """An ended task is started anew: its own latch is closed, those that it names count up."""
        if row := self._rows.get(latch_of(task.id)):
            row.close_again()
        failed = int(task.state is not State.COMPLETED)
        for latch in task.counts:
            self._rows.setdefault(latch, GateRow(latch)).count_again(1, failed)

    def set_capacities(self, capacities: Iterable[Capacity]) -> set[str]:
        for name, capacity in capacities:
            self._rows.setdefault(name, GateRow(name, capacity=0)).pinned = capacity
        return {name for name, _ in capacities}

    def announce(self, gates: Iterable[Gate]) -> set[str]:
        """A new task says how many may pass: that counts for those who stand there, too."""
        touched = set()
        for gate in gates:
            row = self._rows.get(gate.name)
            if row and (row.capacity, row.period) != (gate.capacity, span_us(gate.period)):
                row.capacity, row.period = gate.capacity, span_us(gate.period)
                touched.add(gate.name)
        return touched

    # Passing.

    def let_pass(self, touched: set[str], now: int) -> None:
        """Go through these gates, and those behind them, until nothing moves."""
        while touched:
            names, touched = next_stage(touched)
            lines = [line for name in names if (line := self._line(name, now))]
            moves = let_pass(lines, now)
            for holder in moves.back:
                self._places.ready.drop(holder.rank, holder.id)
                self._places.park(holder)
            for parked in (*moves.ready, *moves.onward):
                self._pass(parked)
            touched |= moves.touched
            for row in moves.gates:
                if row.kind is not GateKind.LOCK:
                    self._rows[row.name] = row
            for name in moves.idle:
                self._rows.pop(name, None)

    def to_look_at(self, now: int) -> set[str]:
        """Those that time has opened."""
        return {name for name, at in self._looks() if at <= now}

    def next_look(self) -> int | None:
        return min((at for _, at in self._looks()), default=None)

    def forget_latches(self, before: int) -> None:
        """Forget those that opened long ago."""
        self._rows = {
            name: row
            for name, row in self._rows.items()
            if row.opened_at is None or row.opened_at >= before or name in self._parked
        }

    # For readers.

    def states(self) -> list[GateState]:
        return [self.state(name) for name in sorted({*self._rows, *self.holders})]

    def state(self, name: str) -> GateState:
        row = self._rows.get(name) or GateRow(name, held=1)
        return state_of(row, len(self._parked.get(name, ())), self.holders.get(name))

    def gate_before(self, task: Task) -> str | None:
        """Which gate a blocked task stands before."""
        if task.id not in self._passed:
            return None
        parked = self._parked_as(task)
        return parked.gates[parked.passed].name

    def ahead(self, name: str, task: Task) -> int:
        """How many stand before it there."""
        return bisect_left(self._parked[name], (task.rank, task.id))

    # Steps.

    def _line(self, name: str, now: int) -> Line | None:
        row = self._row(name, now)
        if row is None:
            return None
        first = self._parked.get(name, SortedIds())[: row.room(now) + 1]
        holder = self.holders.get(name)
        return Line(
            row,
            [self._parked_as(self._places.tasks[task_id]) for _, task_id in first],
            self._that_may_be_overtaken(self._places.tasks[holder]) if holder else None,
        )

    def _row(self, name: str, now: int) -> GateRow | None:
        if kind_of(name) is GateKind.LOCK:
            return GateRow(name, held=int(name in self.holders))
        if name not in self._rows:
            if kind_of(name) is GateKind.LATCH:
                return self._latch(name, now)
            if name not in self._parked:
                return None
            _, first = self._parked[name][0]
            parked = self._parked_as(self._places.tasks[first])
            gate = parked.gates[parked.passed]
            self._rows[name] = GateRow(name, gate.capacity, span_us(gate.period))
        return self._rows[name]

    def _latch(self, name: str, now: int) -> GateRow:
        """A latch that nobody made: of a task that will open it, or open."""
        task = self._places.tasks.get(TaskId(key_of(name)))
        if task and task.state not in TERMINAL:
            return GateRow(name, left=1)
        return GateRow(name, opened_at=now, is_kept=False)

    def _that_may_be_overtaken(self, holder: Task) -> Parked | None:
        gates = to_pass(holder.lock, holder.gates)
        is_last = gates[-1].kind is GateKind.LOCK
        if not (is_last and self._places.is_ready(holder)):
            return None
        return Parked(holder.rank, holder.id, gates, len(gates))

    def _parked_as(self, task: Task) -> Parked:
        return Parked(task.rank, task.id, to_pass(task.lock, task.gates), self._passed[task.id])

    def _pass(self, parked: Parked) -> None:
        """Move a task through the gate that it stood before."""
        through = parked.gates[parked.passed - 1]
        task = self._places.tasks[parked.id]
        self._take_out(parked._replace(rank=task.rank, passed=parked.passed - 1))
        self._places.tasks[parked.id] = replace(task, rank=parked.rank)
        if through.kind is GateKind.LOCK:
            self.holders[through.name] = parked.id
        if parked.next_gate is None:
            self._places.line_up(parked.id)
            self.passed_on[parked.id] = None
        else:
            self._places.park(parked)

    def _take_out(self, parked: Parked) -> None:
        name = parked.gates[parked.passed].name
        del self._passed[parked.id]
        self._parked[name].drop(parked.rank, parked.id)
        if not self._parked[name]:
            del self._parked[name]

    def _release(self, task: Task, gates: Iterable[Gate]) -> set[str]:
        touched = set()
        for gate in gates:
            if gate.kind is GateKind.LATCH:
                continue
            touched.add(gate.name)
            if gate.kind is GateKind.LOCK:
                del self.holders[gate.name]
            else:
                self._rows[gate.name].held -= 1
        return touched

    def _looks(self) -> Iterable[tuple[str, int]]:
        return ((name, row.look_at) for name, row in self._rows.items() if row.look_at is not None)
