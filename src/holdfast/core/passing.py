"""Who may pass a gate now. Pure: stores read rows and lines, and write what comes out.

    while touched:
        names, touched = next_stage(touched)
        moves = let_pass(<the lines before these gates>, now)
        <write moves>
        touched |= moves.touched

A task that becomes eligible is put before its first gate; one that leaves lets go of what it has
passed. Either way the gates that it touched are gone through as above, each kind after the other,
until nothing moves. Stores lock gates in that order too, so nobody waits crosswise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from holdfast.core.gate import PARKED_CAP, Gate, GateKind, GateState, kind_of, order_of
from holdfast.core.priority import MICROSECONDS
from holdfast.core.task import TaskId

SLICE: Final = 1000
"""So many pass one gate in one step. The rest of an open one's line passes with later claims."""

CHUNKS: Final = 64
"""A rate remembers its starts in so many parts at most: the larger its capacity, the coarser. A
part counts until its last start is a period old, so there are never too many starts, at times too
few.
"""


@dataclass(slots=True)
class GateRow:
    """A gate as a store keeps it while anybody holds it, stands before it, or has set its capacity.

    `starts` are (how many, when the last of them was), oldest first; `look_at` is when to go
    through it again though nobody comes or leaves. Times in microseconds. Not `is_kept`: a latch
    that nobody made, of a task that has ended or is unknown; it is open. `capacity` 0: somebody set
    it (`pinned`) before a task said how many may pass.
    """

    name: str
    capacity: int = 1
    period: int = 0
    pinned: int | None = None
    held: int = 0
    starts: list[tuple[int, int]] = field(default_factory=list)
    left: int = 0
    failed: int = 0
    opened_at: int | None = None
    look_at: int | None = None
    is_kept: bool = True
    kind: GateKind = field(init=False)

    def __post_init__(self) -> None:
        self.kind = kind_of(self.name)

    @property
    def allowed(self) -> int:
        return self.capacity if self.pinned is None else self.pinned

    def room(self, now: int) -> int:
        """How many may pass now, in one step."""
        if self.kind is GateKind.LATCH:
            return 0 if self.opened_at is None else SLICE
        free = self.allowed - self.held
        if self.starts:
            free -= sum(n for n, last in self.starts if last + self.period > now)
        return max(0, min(SLICE, free))

    def hear(self, gate: Gate) -> None:
        """The first who comes says how many may pass, if nobody has."""
        if not self.capacity:
            self.capacity, self.period = gate.capacity, round(gate.period * MICROSECONDS)

    def enter(self) -> None:
        if self.kind is not GateKind.LATCH:
            self.held += 1

    def start(self, number: int, now: int) -> None:
        """So many of those that have passed a rate begin to run."""
        self.held -= number
        size = -(-self.allowed // CHUNKS) or 1
        while number > 0:
            n, _ = self.starts[-1] if self.starts else (size, 0)
            part = min(number, size - n) if n < size else 0
            if part:
                self.starts[-1] = (n + part, now)
            else:
                part = min(number, size)
                self.starts.append((part, now))
            number -= part
        self._forget_starts(now)

    def count(self, by: int, failed: int, now: int) -> None:
        """Count a latch."""
        if self.opened_at is not None:
            return
        self.left += by
        self.failed += failed
        if self.left <= 0:
            self.left, self.opened_at = 0, now

    def close_again(self) -> None:
        """Its task was started anew: the latch opens at its next end."""
        self.left, self.failed, self.opened_at, self.look_at = 1, 0, None, None

    def count_again(self, number: int, failed: int) -> None:
        """So many tasks that it counted were started anew; `failed` of them had not gone well."""
        self.close()
        self.left += number
        self.failed = max(0, self.failed - failed)

    def close(self) -> None:
        """A latch that may have opened is counted up all the same."""
        if self.opened_at is not None:
            self.opened_at = self.look_at = None

    def is_idle(self) -> bool:
        """Whether nothing would be lost with it, if nobody stands before it."""
        if self.kind is GateKind.LATCH:
            return not self.is_kept
        return self.held <= 0 and self.pinned is None and not self.starts

    def _forget_starts(self, now: int) -> None:
        self.starts = [(n, last) for n, last in self.starts if last + self.period > now]
        self.look_at = self.starts[0][1] + self.period if self.starts else None

    def look_again(self, now: int, *, more: bool) -> None:
        """Say when to go through it again by itself. `more`: somebody is left before it."""
        self.look_at = None
        if self.kind is GateKind.RATE:
            self._forget_starts(now)
        if more and self.room(now) > 0:
            self.look_at = now


def state_of(row: GateRow, parked: int, holder: TaskId | None) -> GateState:
    """A gate for those who look at it; so many stand before it."""
    return GateState(
        name=row.name,
        capacity=row.allowed,
        pinned=row.pinned is not None,
        held=row.held,
        parked=min(parked, PARKED_CAP),
        holder=holder,
        opens_at=None if row.look_at is None or not parked else _as_time(row.look_at),
        left=row.left,
        failed=row.failed,
        is_open=row.opened_at is not None,
    )


def _as_time(us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)


class Parked(NamedTuple):
    """A task before a gate: `gates[passed]`, or behind them all."""

    rank: int
    id: TaskId
    gates: tuple[Gate, ...]
    passed: int

    def behind_gate(self, now: int) -> Parked:
        """Behind the gate that it stands before. How long it stood before a share counts for
        nothing: who has less to do comes in between.
        """
        gate, rank = self.gates[self.passed], self.rank
        if gate.kind is GateKind.SHARE:
            rank = max(rank, now - gate.head_start)
        return Parked(rank, self.id, self.gates, self.passed + 1)

    @property
    def next_gate(self) -> Gate | None:
        return self.gates[self.passed] if self.passed < len(self.gates) else None


class Line(NamedTuple):
    """A gate, and the first who stand before it by (rank, id): as many as have room, the first in
    any case, and of a whole slice one more. `holder` is a lock's if it is ready, has not started,
    and passed no gate after the lock: it may be overtaken.
    """

    gate: GateRow
    parked: list[Parked]
    holder: Parked | None = None


@dataclass(slots=True)
class Moves:
    """What to write: gates as they are now (`gates`), gates to forget (`idle`), tasks that are
    ready, that stand before their next gate (`onward`), and holders that step back before theirs.
    """

    gates: list[GateRow] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    ready: list[Parked] = field(default_factory=list)
    onward: list[Parked] = field(default_factory=list)
    back: list[Parked] = field(default_factory=list)

    @property
    def touched(self) -> set[str]:
        """Before which gates somebody stands who did not before."""
        return {parked.gates[parked.passed].name for parked in self.onward}


def next_stage(touched: Iterable[str]) -> tuple[list[str], set[str]]:
    """The gates to go through next, in the order of passing, and those that wait for it."""
    by_kind = defaultdict[GateKind, list[str]](list)
    for name in touched:
        by_kind[kind_of(name)].append(name)
    now = sorted(by_kind.pop(min(by_kind, key=order_of)))
    return now, set(chain.from_iterable(by_kind.values()))


def let_pass(lines: Iterable[Line], now: int) -> Moves:
    """Let the first of each line pass, as many as there is room for."""
    moves = Moves()
    for gate, parked, holder in lines:
        if holder is not None and parked and parked[0][:2] < holder[:2]:
            moves.back.append(holder._replace(passed=holder.passed - 1))
            gate.held -= 1
            parked = [parked[0], holder]  # noqa: PLW2901 - who else stands there stays anyway
        if parked:
            gate.hear(parked[0].gates[parked[0].passed])
        passing = parked[: gate.room(now)]
        for one in passing:
            gate.enter()
            further = one.behind_gate(now)
            (moves.ready if further.next_gate is None else moves.onward).append(further)
        gate.look_again(now, more=len(parked) > len(passing))
        if len(parked) == len(passing) and gate.is_idle():
            moves.idle.append(gate.name)
        else:
            moves.gates.append(gate)
    return moves
