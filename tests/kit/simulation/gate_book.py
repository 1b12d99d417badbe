"""What gates must be, as a plain reading of the port's words on them: no rows, no lines kept.

Who stands before which gate follows from where each task is (`Known.past`), and is counted anew at
every step. What has to be remembered is little: latches, the starts of rates, and how many may hold
a gate. Where the port leaves a choice (the order inside one step) that number is a span.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from tests.kit.simulation.known import Known, Place

from holdfast.core.gate import Capacity, Count, Gate, GateKind, GateState
from holdfast.core.task import NewTask, State, TaskId

Finding = tuple[str, TaskId | None, str]
Lines = defaultdict[str, list[Known]]


class Latch:
    """A latch that somebody made."""

    __slots__ = ("failed", "left", "opened")

    def __init__(self) -> None:
        self.left = self.failed = 0
        self.opened: int | None = None

    def count(self, by: int, failed: int, now: int) -> None:
        if self.opened is None:
            self.left, self.failed = self.left + by, self.failed + failed
            if self.left <= 0:
                self.left, self.opened = 0, now

    def count_again(self, failed: bool) -> None:
        """A task that it counts was started anew."""
        self.left, self.opened = self.left + 1, None
        self.failed = max(0, self.failed - failed)


class GateBook:
    """Latches, starts and capacities; and whether everybody is where that allows."""

    def __init__(self, tasks: dict[TaskId, Known]) -> None:
        self._tasks = tasks
        self.latches: dict[str, Latch] = {}
        self.pins: dict[str, int] = {}
        self.starts: dict[str, list[int]] = {}
        self.shut: set[str] = set()  # latches that were closed in this step
        self.unsure: set[str] = set()  # own latches of tasks that were forgotten, and came again
        self._specs: dict[str, Gate] = {}  # of rates: they never change
        self._span: dict[str, tuple[int, int]] = {}  # the capacity of gates in use is within
        self._said: defaultdict[str, list[int]] = defaultdict(list)  # by submits of this step
        self._peak: dict[str, int] = {}  # what it was before, of those changed in this step
        self._latest = 0

    # What happens

    def submitted(self, new: NewTask) -> None:
        for gate in new.gates:
            self._said[gate.name].append(gate.capacity)
            if gate.kind is GateKind.RATE:
                self._specs[gate.name] = gate

    def pin(self, capacities: Iterable[Capacity]) -> None:
        for name, capacity in capacities:
            self._peak[name] = max(self._peak.get(name, 0), self.allowed(name)[1])
            if capacity is None:
                self.pins.pop(name, None)
            else:
                self.pins[name] = capacity

    def count(self, counts: Iterable[Count], now: int, behind: str | None = None) -> None:
        for name, by, failed in counts:
            if by > 0 and name not in self.latches:
                self.latches[name] = Latch()
                self.shut.add(name)
            if name == behind and self.latches[name].opened is not None:
                self.latches[name].opened = None
                self.shut.add(name)
            if name in self.latches:
                self.latches[name].count(by, failed, now)

    def ended(self, known: Known, now: int) -> None:
        failed = int(known.state is not State.COMPLETED)
        self.count([Count(name, -1, failed) for name in known.counts], now)

    def begun_again(self, known: Known) -> None:
        """An ended task, before it is started anew."""
        self.shut.update((f"latch:{known.new.id}", *known.counts))
        for name in known.counts:
            latch = self.latches.setdefault(name, Latch())
            latch.count_again(known.state is not State.COMPLETED)

    def started(self, known: Known, now: int) -> None:
        for gate in known.gates:
            if gate.kind is GateKind.RATE:
                self.starts.setdefault(gate.name, []).append(now)

    def pruned(self, before: int) -> None:
        for name, latch in list(self.latches.items()):
            if latch.opened is not None and latch.opened < before:
                del self.latches[name]

    # What follows

    def is_open(self, name: str) -> bool:
        if name in self.latches:
            return self.latches[name].opened is not None
        known = self._tasks.get(TaskId(name.removeprefix("latch:")))
        return known is None or known.place is Place.DONE

    def allowed(self, name: str) -> tuple[int, int]:
        """How many may hold it: at least, and at most."""
        if name in self.pins:
            return self.pins[name], self.pins[name]
        return (1, 1) if name.startswith("lock:") else self._span.get(name, (0, 0))

    def used(self, name: str, now: int) -> int:
        """Starts that count."""
        if name not in self.starts:
            return 0
        span = round(self._specs[name].period * 1_000_000)
        return sum(at + span > now for at in self.starts[name])

    def opens_at(self, name: str) -> int | None:
        """When the oldest start of a rate no longer counts."""
        starts = self.starts.get(name)
        return min(starts) + round(self._specs[name].period * 1_000_000) if starts else None

    def busy(self) -> list[str]:
        """Gates with a capacity before which somebody stands."""
        blocked = (k for k in self._tasks.values() if k.place is Place.ELIGIBLE and not k.is_ready)
        names = {known.names[known.past] for known in blocked}
        return sorted(name for name in names if not name.startswith(("latch:", "lock:")))

    def is_timed(self) -> bool:
        """Whether somebody stands before a rate: time alone may let him pass."""
        eligible = (k for k in self._tasks.values() if k.gates and k.place is Place.ELIGIBLE)
        return any(
            k.past < len(k.gates) and k.gates[k.past].kind is GateKind.RATE for k in eligible
        )

    def openings(self, knowns: Iterable[Known], now: int) -> Iterator[int]:
        """When time will let some of these pass a rate."""
        holding, standing, _ = self._lines()
        for name in [name for name in standing if name.startswith("rate:")]:
            at = self.opens_at(name)
            if at is not None and now == self._latest and any(k in knowns for k in standing[name]):
                used = len(holding[name]) + self.used(name, at)
                if used < self.allowed(name)[0]:
                    yield at

    def judge(self, now: int, *, by_claim: bool) -> Iterator[Finding]:
        """Whether this step let the right ones pass, and nobody else. Then it is over."""
        holding, standing, passed = self._lines()
        self._forget_starts(now)
        self._settle_capacities(holding, standing, passed)
        for name in {**passed, **standing}:
            if name in self.unsure:
                continue
            if name.startswith("latch:"):
                yield from self._judge_latch(name, standing[name], passed[name])
            else:
                used = len(holding[name]) + self.used(name, now)
                is_timed = name.startswith("rate:")
                looked_at = (by_claim and now == self._latest) or not is_timed
                yield from self._judge_room(name, used, standing[name], passed[name], looked_at)
                yield from self._judge_order(name, holding[name], standing[name], passed[name])
        self._end_step()

    def judge_list(self, listed: Sequence[GateState]) -> Iterator[Finding]:
        """Whether the gates that a store lists are those there are, in their state."""
        holding, standing, _ = self._lines()
        needed = {name for name in (*holding, *standing) if not name.startswith("latch:")}
        needed |= self.pins.keys() | self.latches.keys()
        found = {state.name: state for state in listed}
        for name in needed - found.keys():
            yield "gates", None, f"{name} is not listed"
        for name, state in found.items():
            holders, parked = holding[name], standing[name]
            if name in self.unsure:
                continue
            if state.parked != len(parked):
                yield "gates", None, f"{len(parked)} stand before {name}, not {state.parked}"
            if state.kind is GateKind.LATCH:
                latch = self.latches.get(name)
                told = (state.is_open, state.failed if latch else 0, state.left if latch else 0)
                truth = (self.is_open(name), *((latch.failed, latch.left) if latch else (0, 0)))
                if told != truth:
                    yield "latch", None, f"{name} is {told}, not {truth}"
            elif state.held != len(holders):
                yield "gates", None, f"{len(holders)} hold {name}, not {state.held}"
            elif not (holders or parked or name in self.pins or self.starts.get(name)):
                yield "gates", None, f"{name} was left behind"

    # Steps

    def _lines(self) -> tuple[Lines, Lines, Lines]:
        """Who holds, who stands before, and who has passed in this step; by gate."""
        holding, standing, passed = Lines(list), Lines(list), Lines(list)
        for known in self._tasks.values():
            running = known.place is Place.RUNNING
            if not (known.gates and (running or known.place is Place.ELIGIBLE)):
                continue
            before = -1 if known.was is None else known.was
            for number, name in enumerate(known.names):
                if number == known.past:
                    standing[name].append(known)
                    break
                if before <= number:
                    passed[name].append(known)
                kind = known.gates[number].kind
                if kind is not GateKind.LATCH and not (running and kind is GateKind.RATE):
                    holding[name].append(known)
        return holding, standing, passed

    def _judge_latch(
        self, name: str, standing: Collection[Known], passed: Collection[Known]
    ) -> Iterator[Finding]:
        is_open = self.is_open(name)
        if is_open and standing:
            yield "stays", next(iter(standing)).new.id, f"stands before {name}, which is open"
        elif passed and not is_open and name not in self.shut:
            yield "latch", next(iter(passed)).new.id, f"passed {name}, which is closed"

    def _judge_room(
        self, name: str, used: int, standing: list[Known], passed: list[Known], looked_at: bool
    ) -> Iterator[Finding]:
        least, most = self.allowed(name)
        most = max(most, self._peak.get(name, 0))
        if passed and used > most:
            rule = name[: name.index(":")]
            yield rule, passed[-1].new.id, f"passed {name}: {used} hold it, not {most}"
        if standing and looked_at and used < least:
            yield "stays", standing[0].new.id, f"before {name}: {used} of {least} hold it"

    def _judge_order(
        self, name: str, holding: list[Known], standing: list[Known], passed: list[Known]
    ) -> Iterator[Finding]:
        for known in standing:
            if known.ahead not in (None, sum(k.order < known.order for k in standing)):
                yield "standing", known.new.id, f"not {known.ahead} before it at {name}"
            if known.was == known.past and any(known.order < k.order_at(name) for k in passed):
                yield "gate_order", known.new.id, f"was passed over before {name}"
            if name.startswith("lock:") and any(_gives_way(k, known) for k in holding):
                yield "gate_order", known.new.id, f"did not overtake before {name}"

    def _forget_starts(self, now: int) -> None:
        self._latest = max(self._latest, now)
        for name, starts in list(self.starts.items()):
            span = round(self._specs[name].period * 1_000_000)
            self.starts[name] = [at for at in starts if at + span > self._latest]

    def _settle_capacities(self, holding: Lines, standing: Lines, passed: Lines) -> None:
        """How many may hold the gates in use now: what the newest submit said, as far as somebody
        was there to hear it; what the first to come says, if nobody was.
        """
        for name in {**holding, **standing, **passed, **self.pins}:
            if name.startswith(("latch:", "lock:")):
                continue
            users = (*holding[name], *standing[name], *passed[name])
            said, span = self._said.get(name, []), self._span.get(name)
            stayed = name in self.pins or any(_was_at(name, known) for known in users)
            if span is None or not stayed:
                said = [*said, *(g.capacity for k in users for g in k.gates if g.name == name)]
                said += span or ()
            if span is not None and said:
                self._peak[name] = max(self._peak.get(name, 0), span[1])
            if said:
                self._span[name] = (min(said), max(said))
        for name in list(self._span):
            in_use = holding[name] or standing[name] or name in self.pins
            if not in_use and not self.starts.get(name):
                del self._span[name]

    def _end_step(self) -> None:
        self._said.clear()
        self._peak.clear()
        self.shut.clear()
        for known in self._tasks.values():
            if known.gates:
                is_there = known.place is Place.ELIGIBLE or known.place is Place.RUNNING
                known.was = known.past if is_there else None


def _was_at(name: str, known: Known) -> bool:
    """Whether it held the gate, or stood before it, a step ago."""
    return known.was is not None and known.was >= known.names.index(name)


def _gives_way(holder: Known, to: Known) -> bool:
    """Whether a lock's holder must let this one overtake it."""
    is_last = holder.gates[-1].kind is GateKind.LOCK
    return holder.place is Place.ELIGIBLE and is_last and to.order < holder.order
