"""Moves what time has moved: due tasks stand in line, expired ones end.

Nothing here is done by a timer. Every claim does it first, whoever claims; in slices, so that a
million tasks due at one instant do not keep others from the database for seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from holdfast.core.lifecycle import ended_idle_as
from holdfast.core.task import Reason, State
from holdfast.stores.sqlite import callbacks
from holdfast.stores.sqlite.locks import rearrange
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
        _line_up(unit, due)
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
    callbacks.owe(unit, [task.seq for task in tasks], now)
    for task in tasks:
        unit.tally.move(task.lane, task.place, DONE)
    unit.tally.retrying(-_retrying(tasks))
    unit.tally.ended(state, now, len(tasks))
    rearrange(unit, {task.lock for task in tasks if task.lock is not None})


def _line_up(unit: Unit, due: Sequence[IdleTask]) -> None:
    if not due:
        return
    unit.db.execute(CLAIMS["line_up"], (as_json([task.seq for task in due]),))
    for task in due:
        unit.tally.move(task.lane, WAITING, READY if task.lock is None else BLOCKED)
    unit.tally.retrying(-_retrying(due))
    rearrange(unit, {task.lock for task in due if task.lock is not None})


def _slice(unit: Unit, what: str, now: int) -> list[IdleTask]:
    (found,) = unit.db.execute(CLAIMS[what], {"now": now, "limit": _SLICE}).fetchone()
    return [IdleTask(*row) for row in orjson.loads(found)]


def _retrying(tasks: Sequence[IdleTask]) -> int:
    return sum(task.state == State.RETRYING.value for task in tasks)
