"""Gates: the one thing that keeps an eligible task from being ready.

A task names the gates that it must pass. It stands before the first closed one, blocked, in the
order of rank, and holds those that it has passed until it leaves: by the end of its attempt, a
cancel, an expiry. The order of passing is the same for every task (`GateKind`, then key), so that
no two tasks wait for each other. Who passes when is decided in `passing`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from holdfast.core.task import TaskId

UNBOUNDED: Final = 2_147_483_647
"""The capacity of a gate through which all may pass."""


class GateKind(StrEnum):
    """What opens a gate. In the order of passing."""

    LATCH = "latch"  # once: it was counted down, or its task has ended
    BREAKER = "breaker"  # what watches for failures sets its capacity: none, one, all
    LOCK = "lock"  # its one holder left
    LIMIT = "limit"  # a holder left: so many are ready or running
    SHARE = (
        "share"  # the same, as the window that one of many has in line; who passes lines up anew
    )
    RATE = "rate"  # time: so many starts per period


_ORDER: Final = {kind: number for number, kind in enumerate(GateKind)}
_KINDS: Final = {kind.value: kind for kind in GateKind}


class Gate(NamedTuple):
    """A gate as a task names it. The newest submit's `capacity` counts, unless an operator has set
    one; `period` is seconds, of a rate. A lock's capacity is 1, and a latch has none. Of a share:
    the `head_start` (microseconds) of a task that has just passed it, over one that comes then.
    """

    kind: GateKind
    key: str
    capacity: int = 1
    period: float = 0.0
    head_start: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.key}"


def gate_name(kind: GateKind, key: str) -> str:
    return f"{kind}:{key}"


def latch_of(task_id: TaskId) -> str:
    """The latch that opens when the task ends."""
    return f"{GateKind.LATCH}:{task_id}"


def kind_of(name: str) -> GateKind:
    return _KINDS[name.partition(":")[0]]  # for every gate several times: an enum's call is slow


def key_of(name: str) -> str:
    return name[name.index(":") + 1 :]


def order_of(kind: GateKind) -> int:
    """Where gates of a kind stand in the order of passing; among themselves they go by name."""
    return _ORDER[kind]


def to_pass(lock: str | None, gates: Iterable[Gate]) -> tuple[Gate, ...]:
    """All gates of a task, its lock among them, in the order of passing."""
    own = () if lock is None else (Gate(GateKind.LOCK, lock),)
    if not gates:
        return own
    named = {gate.name: gate for gate in (*gates, *own)}
    return tuple(sorted(named.values(), key=lambda gate: (_ORDER[gate.kind], gate.name)))


def sharing(gates: tuple[Gate, ...], head_start: int) -> tuple[Gate, ...]:
    """The gates of a task with this head start."""
    if head_start and any(gate.kind is GateKind.SHARE for gate in gates):
        return tuple(
            gate._replace(head_start=head_start) if gate.kind is GateKind.SHARE else gate
            for gate in gates
        )
    return gates


def standing_behind(gates: tuple[Gate, ...], latch: str) -> tuple[Gate, ...]:
    """The gates of a task that stands behind this latch, too."""
    return to_pass(None, (*gates, Gate(GateKind.LATCH, key_of(latch))))


def gates_text(gates: tuple[Gate, ...]) -> str | None:
    """As stores keep them beside a task: JSON, None for no gates."""
    if not gates:
        return None
    return json.dumps([g if g.head_start else g[:-1] for g in gates])


@lru_cache(maxsize=4096)
def gates_from(text: str | None) -> tuple[Gate, ...]:
    """What `gates_text` wrote."""
    return gates_read(json.loads(text) if text else ())


def gates_read(given: Iterable[Sequence[Any]]) -> tuple[Gate, ...]:
    """The same, for whoever has read that JSON already."""
    return tuple([Gate(_KINDS[kind], *rest) for kind, *rest in given])


class Count(NamedTuple):
    """Change a latch: up by so many (it is made if it is new), or down. At zero it opens; what
    comes later changes nothing (but for what `ports.store` says), nor does counting down what is
    unknown. `failed` of those counted down did not go well.
    """

    latch: str
    by: int
    failed: int = 0


class Capacity(NamedTuple):
    """An operator's or a breaker's word on how many may pass a gate; None: what tasks say."""

    gate: str
    capacity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateState:
    """A gate as it is now, for people and for `why`.

    `held` is how many have passed and not left (of a rate: those that have not started). `parked`
    is how many stand before it, counted up to `PARKED_CAP`. `holder` is a lock's. `opens_at` is
    when time lets the next of those pass. Of a latch: `left` counts, `failed` of them, open or
    not.
    """

    name: str
    capacity: int = 1
    pinned: bool = False
    held: int = 0
    parked: int = 0
    holder: TaskId | None = None
    opens_at: datetime | None = None
    left: int = 0
    failed: int = 0
    is_open: bool = False

    @property
    def kind(self) -> GateKind:
        return kind_of(self.name)


PARKED_CAP: Final = 1000
