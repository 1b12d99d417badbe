"""One task and one worker as the observer knows them, from what was asked and answered alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from tests.kit.checker import Picture

from holdfast.core.gate import Gate, GateKind
from holdfast.core.task import AttemptEnd, Cause, NewTask, Reason, State, Task, WorkerId

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ORDER = ("latch", "breaker", "lock", "limit", "share", "rate")


class Place(Enum):
    """Where a task is by `ports/store.py`. Ready and blocked are one; only its gates part them."""

    WAITING = auto()
    ELIGIBLE = auto()
    RUNNING = auto()
    DONE = auto()


class Known:
    """What the store must say about one task."""

    __slots__ = (
        "ahead", "attempt", "came_with", "cancel_requested", "cause", "causes", "charged", "counts",
        "crash_count", "ends", "expires", "fence", "finished", "gates", "names", "new", "past",
        "place", "rank", "reason", "refused", "result", "retrying", "run_at", "state", "was",
        "worker", "workers",
    )  # fmt: skip

    def __init__(self, new: NewTask, run_at: int, expires: int | None) -> None:
        self.new = new
        self.run_at = run_at
        self.rank = run_at - new.head_start
        self.came_with = self.rank  # its rank before this step
        self.expires = expires
        self.place = Place.WAITING
        self.state: State | None = None  # set when done
        self.retrying = False
        self.reason: Reason | None = None
        self.result: bytes | None = None
        self.finished = 0
        self.attempt = 0
        self.worker: WorkerId | None = None
        self.fence: int | None = None
        self.charged = 0
        self.crash_count = 0
        self.cancel_requested = False
        self.cause = Cause.SUBMITTED
        self.causes: list[Cause] = []
        self.workers: list[WorkerId] = []
        self.ends: dict[int, AttemptEnd] = {}
        self.refused: Counter[tuple[int, WorkerId]] = Counter()
        own = () if new.lock is None else (Gate(GateKind.LOCK, new.lock),)
        self.gates = _in_order((*new.gates, *own))
        self.names = [gate.name for gate in self.gates]
        self.counts = new.counts
        self.past = 0  # how many of its gates it has passed
        self.was: int | None = None  # the same, a step before; None: it was in no line
        self.ahead: int | None = None  # how many stand before it there, if the store was asked

    @property
    def order(self) -> tuple[int, str]:
        return (self.rank, self.new.id)

    def order_at(self, name: str) -> tuple[int, str]:
        """Its order in the line of a gate that it passed in this step."""
        number = self.names.index(name)
        behind_share = any(gate.kind is GateKind.SHARE for gate in self.gates[:number])
        return (self.rank if behind_share else self.came_with, self.new.id)

    def have_passed(self, number: int, now: int) -> None:
        """So many of its gates, by now. Behind a share it is as if it had come now."""
        before, self.past, self.came_with = self.was or 0, number, self.rank
        for gate in self.gates[before:number]:
            if gate.kind is GateKind.SHARE:
                self.rank = max(self.rank, now - gate.head_start)

    def become_eligible(self, now: int) -> None:
        if self.run_at <= now:
            self.place = Place.ELIGIBLE
            self.retrying = False
            self.past, self.was = 0, None
        else:
            self.place = Place.WAITING

    @property
    def is_ready(self) -> bool:
        return self.place is Place.ELIGIBLE and self.past == len(self.gates)

    def finish(self, state: State, reason: Reason | None, now: int) -> None:
        self.place = Place.DONE
        self.state = state
        self.reason = reason
        self.finished = now

    def start(self, worker: WorkerId, fence: int | None) -> None:
        self.place = Place.RUNNING
        self.attempt += 1
        self.worker = worker
        self.fence = fence
        self.causes.append(self.cause)
        self.workers.append(worker)

    def stand_behind(self, latch: str) -> None:
        """Has one more gate from now on."""
        self.gates = _in_order((*self.gates, Gate(GateKind.LATCH, latch.removeprefix("latch:"))))
        self.names = [gate.name for gate in self.gates]

    def renew(self, run_at: int, head_start: int, now: int) -> None:
        """As an operator's requeue leaves a finished task."""
        self.run_at = run_at
        self.rank = run_at - head_start
        self.expires = self.state = self.reason = self.result = None
        self.charged = self.crash_count = self.finished = 0
        self.cancel_requested = False
        self.retrying = False
        self.cause = Cause.OPERATOR
        self.become_eligible(now)

    def hurry(self, run_at: int, head_start: int, now: int) -> None:
        """As an operator's requeue leaves one that waits."""
        self.run_at = run_at
        self.rank = min(self.rank, run_at - head_start)
        self.become_eligible(now)

    def differs(self, task: Task, shown: State) -> str | None:
        """The first thing that the store says otherwise, if any."""
        expected = (
            shown, self.rank, self.attempt, self.worker, self.fence, self.charged,
            self.crash_count, self.cause, self.cancel_requested, self.reason, self.result,
            self.counts,
        )  # fmt: skip
        found = (
            task.state, task.rank, task.attempt, task.worker_id, task.fence, task.charged,
            task.crash_count, task.cause, task.cancel_requested, task.reason, task.result,
            task.counts,
        )  # fmt: skip
        if expected == found:
            due = _EPOCH + timedelta(microseconds=self.run_at)
            late = self.place is Place.WAITING and task.run_at != due
            return f"run_at is {task.run_at}, not {due}" if late else None
        names = "state rank attempt worker_id fence charged crash_count cause cancel_requested"
        fields = [*names.split(), "reason", "result", "counts"]
        return next(
            f"{name} is {got!r}, not {want!r}"
            for name, want, got in zip(fields, expected, found, strict=True)
            if want != got
        )

    def history_differs(self, picture: Picture) -> str | None:
        """The first thing that the history tells otherwise, if any."""
        attempts, events = picture.history.attempts, picture.history.events
        told = [(a.cause, a.worker_id) for a in attempts]
        if told != list(zip(self.causes, self.workers, strict=True)):
            return (
                f"the starts were {list(zip(self.causes, self.workers, strict=True))}, not {told}"
            )
        ends = {a.number: a.ended for a in attempts if a.ended is not None}
        if ends != self.ends:
            return f"the attempts ended as {self.ends}, not {ends}"
        if not events or events[0].kind != "submitted":
            return "the history does not begin with `submitted`"
        return None

    def refusals_differ(self, picture: Picture) -> str | None:
        """Whether every refused result, and nothing else, is told as one."""
        told = Counter(
            (e.attempt, e.worker_id)
            for e in picture.history.events
            if e.kind == "late_result_refused"
        )
        if told != self.refused:
            return f"refused late results: {dict(self.refused)}, the history tells {dict(told)}"
        return None


def _in_order(named: Sequence[Gate]) -> tuple[Gate, ...]:
    """Gates in the order of passing."""
    gates = {gate.name: gate for gate in named}
    return tuple(sorted(gates.values(), key=lambda gate: (_ORDER.index(gate.kind), gate.name)))


class KnownWorker:
    """What the store must say about one worker."""

    __slots__ = ("alive", "beats", "last_beat", "last_beat_us")

    def __init__(self, mono: float, wall_us: int) -> None:
        self.alive = True
        self.beats = 0
        self.last_beat = mono
        self.last_beat_us = wall_us
