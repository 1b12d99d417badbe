"""Moves what time has moved: due tasks stand in line, expired ones end.

Nothing here is done by a timer. Every claim does it first, whoever claims; in slices, so that a
million tasks due at one instant do not keep others from the database for seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from holdfast.core.lifecycle import ended_idle_as
from holdfast.core.task import Reason, State, TaskId
from holdfast.stores.sqlite.gates import Leaving, first_gate, go_through, leave, let_pass
from holdfast.stores.sqlite.queries import CLAIMS, HISTORY, SETTLEMENTS, as_json
from holdfast.stores.sqlite.tally import BLOCKED, DONE, READY, WAITING
from holdfast.stores.sqlite.writer import Unit

_SLICE: Final = 1000
_SLICES: Final = 5


class IdleTask(NamedTuple):
    """A task that is not running, as much as must be known to move it."""

    seq: int
    lane: int
    place: int
    state: str
    lock: str | None
    gates: str | None
    passed: int
    counts: str | None
    awaited: TaskId | None


def cancel_expired(unit: Unit, now: int) -> bool:
    """End what was not started in time; False if some are left for another turn."""
    for _ in range(_SLICES):
        expired = _slice(unit, "expired", now)
        end(unit, expired, Reason.EXPIRED, now)
        if len(expired) < _SLICE:
            return True
    return False


def promote_due(unit: Unit, now: int) -> bool:
    """Put what is due in line; False if some are left for another turn."""
    for _ in range(_SLICES):
        due = _slice(unit, "due", now)
        _line_up(unit, due, now)
        if len(due) < _SLICE:
            return True
    return False


def end(unit: Unit, tasks: Sequence[IdleTask], reason: Reason, now: int) -> None:
    """End tasks that are not running. The event has the reason's name."""
    if not tasks:
        return
    seqs = as_json([task.seq for task in tasks])
    state = ended_idle_as(reason).value
    ending = {"now": now, "reason": reason.value, "state": state, "seqs": seqs}
    unit.db.execute(SETTLEMENTS["end_idle"], ending)
    unit.db.execute(HISTORY["note_all"], {"at": now, "kind": reason.value, "seqs": seqs})
    for task in tasks:
        unit.tally.move(task.lane, task.place, DONE)
    unit.tally.retrying(-_retrying(tasks))
    unit.tally.ended(state, now, len(tasks))
    leaving = [
        Leaving(task.place, task.lock, task.gates, task.passed, task.counts, task.awaited, True)
        for task in tasks
    ]
    go_through(unit, leave(unit, leaving, now), now)


def _line_up(unit: Unit, due: Sequence[IdleTask], now: int) -> None:
    if not due:
        return
    unit.db.execute(CLAIMS["line_up"], (as_json([task.seq for task in due]),))
    touched: set[str] = set()
    for task in due:
        gate = first_gate(task.lock, task.gates)
        unit.tally.move(task.lane, WAITING, READY if gate is None else BLOCKED)
        touched |= set() if gate is None else {gate}
    unit.tally.retrying(-_retrying(due))
    let_pass(unit, touched, now)


def _slice(unit: Unit, what: str, now: int) -> list[IdleTask]:
    (found,) = unit.db.execute(CLAIMS[what], {"now": now, "limit": _SLICE}).fetchone()
    return [IdleTask(*row) for row in orjson.loads(found)]


def _retrying(tasks: Sequence[IdleTask]) -> int:
    return sum(task.state == State.RETRYING.value for task in tasks)
