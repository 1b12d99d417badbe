"""Gates in words: what each kind is for, and how one stands."""

from __future__ import annotations

from typing import Final

from holdfast.core.breaker import BreakerState
from holdfast.core.gate import GateKind
from holdfast.core.limit_state import LimitState
from holdfast.dashboard.words import number, plural

EXPLAINED: Final = {
    GateKind.BREAKER: "Breaker: while too much of what it watches fails, nobody passes. After a "
    "cool-down one task may try; if that goes well all go on.",
    GateKind.LIMIT: "Limit: so many tasks are ready or running at a time, over the whole fleet.",
    GateKind.LOCK: "Lock: one task at a time has a resource; the others of its key wait in line.",
    GateKind.RATE: "Rate: so many tasks start in any period; a backlog cannot burst.",
    GateKind.SHARE: "Share: of each key, such as a tenant, so many tasks are in line or running; "
    "the others stand aside, so nobody is kept waiting by somebody's million tasks.",
}
"""The kinds that are shown, in a sentence each."""


def in_short(gate: LimitState) -> str:
    """How it stands: `3 of 5 are ready or running`."""
    held = number(gate.held)
    many = "any number" if gate.capacity is None else number(gate.capacity)
    match gate.kind:
        case GateKind.LOCK:
            return "held" if gate.held else "free"
        case GateKind.RATE:
            return f"{many} a period" + (f", {held} let through and not started" * bool(gate.held))
        case GateKind.SHARE:
            return f"{held} of {many} in line or running"
        case GateKind.BREAKER:
            return _of_breaker(gate)
        case _:
            return f"{held} of {many} ready or running"


def _of_breaker(gate: LimitState) -> str:
    match gate.state:
        case BreakerState.OPEN:
            return "nobody passes"
        case BreakerState.HALF_OPEN:
            return "one task tries"
        case _:
            return "all pass"


def waiting(gate: LimitState) -> str:
    """How many stand before it."""
    return plural(gate.waiting, "task") + (" or more" if gate.waiting_is_capped else "")
