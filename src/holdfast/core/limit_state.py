"""A limit, rate, share or breaker for those who look at it and set it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.core.breaker import BreakerRecord, BreakerState
from holdfast.core.gate import PARKED_CAP, UNBOUNDED, GateKind, GateState
from holdfast.core.task import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitState:
    """How many a limit lets pass and who does. `capacity` None: as many as come. `is_set`: an
    operator said so, or a breaker is not closed. `held` are ready or running (of a rate: ready and
    not started); `waiting` stand before it, counted up to a thousand. `next_at` is when time lets
    the next pass. `state` is a breaker's, `holder` a lock's.
    """

    name: str
    kind: GateKind
    capacity: int | None
    is_set: bool
    held: int
    waiting: int
    next_at: datetime | None = None
    state: BreakerState | None = None
    holder: TaskId | None = None

    @property
    def waiting_is_capped(self) -> bool:
        return self.waiting >= PARKED_CAP


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitDetails:
    """A limit with some who hold it and some who wait for it, the oldest first."""

    limit: LimitState
    holders: tuple[TaskId, ...] = ()
    waiters: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPage:
    """Some limits, by name. Pass `next` as `after` to get those after; None means the end."""

    limits: tuple[LimitState, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitChange:
    """What was set: whether that changed anything, and whether anything has this name, a task that
    uses it or a definition: it may be misspelt otherwise.
    """

    name: str
    capacity: int | None
    state: BreakerState | None
    changed: bool
    known: bool


def limit_state(
    gate: GateState, breaker: BreakerRecord | None = None, next_at: datetime | None = None
) -> LimitState:
    """A gate for people. `breaker` is its record, if it is one and has one."""
    state = None
    if gate.kind is GateKind.BREAKER:
        state = BreakerState.CLOSED if breaker is None else breaker.state
    return LimitState(
        name=gate.name,
        kind=gate.kind,
        capacity=None if gate.capacity >= UNBOUNDED else gate.capacity,
        is_set=gate.pinned,
        held=gate.held,
        waiting=gate.parked,
        next_at=next_at or gate.opens_at,
        state=state,
        holder=gate.holder,
    )
