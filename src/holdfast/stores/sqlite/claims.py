"""Hands tasks to workers.

A claim first looks, in one cheap statement. If nothing is due, expired or ready, that is all: an
idle worker's poll takes no write lock and flushes nothing. Otherwise it moves what time has moved,
takes the first in line, and marks them as started, all in the writer's transaction.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import orjson

from holdfast.core.attempt import Claim, Claimed
from holdfast.core.fleet import WorkerStatus
from holdfast.core.task import Cause, Json, WorkerId
from holdfast.errors import WorkerGone
from holdfast.stores.sqlite.eligible import cancel_expired, promote_due
from holdfast.stores.sqlite.queries import CLAIMS, STATS, as_json, run_many
from holdfast.stores.sqlite.tally import READY, RUNNING
from holdfast.stores.sqlite.writer import AGAIN, Again, Unit

_ALIVE: Final = (WorkerStatus.ACTIVE, WorkerStatus.DRAINING)
_CAUSES: Final = {cause.value: cause for cause in Cause}
_BY_RANK_AND_ID: Final = itemgetter(1, 2)


class Ask(NamedTuple):
    """Who asks for work, and for which."""

    worker_id: WorkerId
    queues: frozenset[str] | None
    capabilities: frozenset[str]
    limit: int


class View(NamedTuple):
    """What a claim found when it looked."""

    is_expired: bool
    is_due: bool
    ready_lanes: Sequence[int]
    next_due: float | None


class Claiming:
    """Claims for the workers of one process. Used by the writer's thread only."""

    def __init__(self) -> None:
        self._paused: frozenset[str] = frozenset()
        self._fruitful: set[WorkerId] = set()

    def peek(self, unit: Unit, ask: Ask) -> Claimed | None:
        """Answer if there is nothing to do. Who got work last time does not ask twice."""
        if ask.worker_id in self._fruitful:
            return None
        view = self._look(unit, ask, unit.now)
        if view.is_expired or view.is_due or (view.ready_lanes and ask.limit > 0):
            return None
        return Claimed([], view.next_due)

    def claim(self, unit: Unit, ask: Ask) -> Claimed | Again:
        now = unit.now
        view = self._look(unit, ask, now)
        if view.is_expired or view.is_due:
            if not (cancel_expired(unit, now) and promote_due(unit, now)):
                return AGAIN
            view = self._look(unit, ask, now)
        claims = take(unit, ask, view.ready_lanes, now)
        (self._fruitful.add if claims else self._fruitful.discard)(ask.worker_id)
        return Claimed(claims, view.next_due)

    def _look(self, unit: Unit, ask: Ask, now: int) -> View:
        """Look with the lanes and pauses remembered; once more if they turn out to be old."""
        view, is_current = self._look_once(unit, ask, now)
        if not is_current:
            unit.lanes.refresh(unit.db)
            view, _ = self._look_once(unit, ask, now)
        return view

    def _look_once(self, unit: Unit, ask: Ask, now: int) -> tuple[View, bool]:
        seen = {"worker": ask.worker_id, "now": now, "lanes": self._lanes(unit, ask)}
        row = unit.db.execute(CLAIMS["look"], seen).fetchone()
        status, last_lane, paused, expired, due, ready, next_due = row
        if status not in _ALIVE:
            self._fruitful.discard(ask.worker_id)
            raise WorkerGone(ask.worker_id)
        before, self._paused = self._paused, frozenset(orjson.loads(paused))
        seconds = None if next_due is None else max(0, next_due - now) / 1e6
        view = View(bool(expired), bool(due), orjson.loads(ready), seconds)
        return view, before == self._paused and unit.lanes.are_all(last_lane or 0)

    def _lanes(self, unit: Unit, ask: Ask) -> str:
        return as_json(
            [
                lane.id
                for lane in unit.lanes.all()
                if lane.admits(ask.queues, self._paused, ask.capabilities)
            ]
        )


def take(unit: Unit, ask: Ask, lanes: Sequence[int], now: int) -> list[Claim]:
    """Start the first in line."""
    if not lanes or ask.limit <= 0:
        return []
    line = _first_in_line(unit, lanes, ask.limit)
    started = {"worker": ask.worker_id, "now": now, "seqs": line.seqs}
    unit.db.execute(CLAIMS["start"], started)
    if line.expiring:
        unit.db.execute(CLAIMS["no_longer_expiring"], (line.seqs,))
    fences = _give_fences(unit, line) if line.locked else {}
    for lane, number in Counter(row[_LANE] for row in line.rows).items():
        unit.tally.move(lane, READY, RUNNING, number)
    return _claims(unit, ask.worker_id, line.rows, fences)


class Line(NamedTuple):
    """The first in line: a row for each, its payload at the end, and what they have together."""

    rows: list[list[Json]]
    seqs: str
    locked: int
    expiring: int


_SEQ, _LANE, _SIZE, _LOCK = 0, 3, 4, 12


def _first_in_line(unit: Unit, lanes: Sequence[int], limit: int) -> Line:
    sql = CLAIMS["first_in_lane"] if len(lanes) == 1 else CLAIMS["first_in_line"]
    asked = {"lanes": as_json(lanes), "limit": limit}
    try:
        meta, payloads, seqs, locked, expiring = unit.db.execute(sql, asked).fetchone()
    except sqlite3.DataError:  # more than a gigabyte of payloads in one go
        return _first_in_line(unit, lanes, max(1, limit // 4))
    rows: list[list[Json]] = orjson.loads(meta)
    start = 0
    for row in rows:
        end = start + row[_SIZE]
        row.append(payloads[start:end])
        start = end
    # They come in order as it is, but SQL does not promise that of a sum.
    rows.sort(key=_BY_RANK_AND_ID)
    return Line(rows, seqs, locked, expiring)


def _give_fences(unit: Unit, line: Line) -> dict[int, int]:
    """Number the holders of locks: every number is larger than all given before."""
    locked = [row[_SEQ] for row in line.rows if row[_LOCK] is not None]
    (last,) = unit.db.execute(STATS["next_fences"], (len(locked),)).fetchone()
    fences = dict(zip(locked, range(last - len(locked) + 1, last + 1), strict=True))
    run_many(unit.db, CLAIMS["give_fences"], list(fences.items()))
    return fences


def _claims(
    unit: Unit, worker_id: WorkerId, rows: list[list[Json]], fences: dict[int, int]
) -> list[Claim]:
    """Claims by the thousand: built as plain tuples, which takes half the time."""
    lane_of = unit.lanes.by_id
    return [
        tuple.__new__(Claim, (
            task_id, attempt + 1, worker_id, name, lane_of[lane].queue, lane_of[lane].priority,
            payload, charged, max_retries, crash_count,
            None if timeout is None else float(timeout), retry, lock, fences.get(seq),
            _CAUSES[cause], trace, owner, False,
        ))
        for (
            seq, _, task_id, lane, _, attempt, name, charged, max_retries, crash_count, timeout,
            retry, lock, cause, trace, owner, payload,
        ) in rows
    ]  # fmt: skip
