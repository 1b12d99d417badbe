"""Hands tasks to workers.

A claim first looks, in one cheap statement. If nothing is due, expired or ready, that is all: an
idle worker's poll takes no write lock and flushes nothing. Otherwise it moves what time has moved,
takes the first in line, and marks them as started, all in the writer's transaction.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import orjson

from holdfast.core.attempt import Claim, Claimed
from holdfast.core.fleet import ALIVE
from holdfast.core.task import Cause, Json, Priority, TaskId, WorkerId
from holdfast.errors import WorkerGone
from holdfast.stores.sqlite.eligible import cancel_expired, promote_due
from holdfast.stores.sqlite.gates import look_again, start
from holdfast.stores.sqlite.lanes import Lane
from holdfast.stores.sqlite.queries import CLAIMS, STATS, as_json, run_many
from holdfast.stores.sqlite.rownumbers import RowNumbers
from holdfast.stores.sqlite.tally import READY, RUNNING
from holdfast.stores.sqlite.writer import AGAIN, Again, Unit

_CAUSES: Final = {cause.value: cause for cause in Cause}
_SUBMITTED: Final = Cause.SUBMITTED
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

    def peek(self, unit: Unit, ask: Ask) -> Taken | None:
        """Answer if there is nothing to do. Who got work last time does not ask twice."""
        if ask.worker_id in self._fruitful:
            return None
        view = self._look(unit, ask, unit.now)
        if view.is_expired or view.is_due or (view.ready_lanes and ask.limit > 0):
            return None
        return Taken(ask.worker_id, None, {}, {}, view.next_due)

    def claim(self, unit: Unit, ask: Ask) -> Taken | Again:
        now = unit.now
        view = self._look(unit, ask, now)
        if view.is_expired or view.is_due:
            if not (cancel_expired(unit, now) and promote_due(unit, now)):
                return AGAIN
            look_again(unit, now)
            view = self._look(unit, ask, now)
        taken = take(unit, ask, view, now)
        (self._fruitful.add if taken.line else self._fruitful.discard)(ask.worker_id)
        return taken

    def _look(self, unit: Unit, ask: Ask, now: int) -> View:
        """Look with the lanes and pauses remembered; once more if they turn out to be old."""
        view, is_current = self._look_once(unit, ask, now)
        if not is_current:
            unit.lanes.refresh(unit.db)
            view, _ = self._look_once(unit, ask, now)
        return view

    def _look_once(self, unit: Unit, ask: Ask, now: int) -> tuple[View, bool]:
        # Judged by what was known before the look: readers learn of lanes while it goes on.
        known = unit.lanes.all()
        lanes = as_json(
            [lane.id for lane in known if lane.admits(ask.queues, self._paused, ask.capabilities)]
        )
        seen = {"worker": ask.worker_id, "now": now, "lanes": lanes}
        row = unit.db.execute(CLAIMS["look"], seen).fetchone()
        status, last_lane, paused, expired, due, ready, *dues = row
        if status not in ALIVE:
            self._fruitful.discard(ask.worker_id)
            raise WorkerGone(ask.worker_id)
        before, self._paused = self._paused, frozenset(orjson.loads(paused))
        look_at = dues[-1]
        next_due = min((at for at in dues if at is not None), default=None)
        seconds = None if next_due is None else max(0, next_due - now) / 1e6
        is_due = due or (look_at is not None and look_at <= now)
        view = View(bool(expired), bool(is_due), orjson.loads(ready), seconds)
        return view, before == self._paused and len(known) == (last_lane or 0)


class ReadyRows(NamedTuple):
    """The first in line, as the database tells them: their rows as JSON, their payloads strung
    together, and what they have in common."""

    meta: str
    payloads: bytes
    seqs: str
    number: int
    locked: int
    expiring: int
    rated: int

    def rows(self) -> list[list[Json]]:
        """A row for each, in order, its payload at the end."""
        rows: list[list[Json]] = orjson.loads(self.meta)
        start = 0
        for row in rows:
            end = start + row[_SIZE]
            row.append(self.payloads[start:end])
            start = end
        # They come in order as it is, but SQL does not promise that of a sum.
        rows.sort(key=_BY_RANK_AND_ID)
        return rows


class Taken(NamedTuple):
    """Tasks that were started. `claimed` makes claims of them, on the thread of whoever asked:
    the writer has the file's lock, and should do nothing that can be done without it.
    """

    worker_id: WorkerId
    line: ReadyRows | None
    fences: Mapping[int, int]
    lanes: Mapping[int, Lane]
    next_due: float | None

    def claimed(self, numbers: RowNumbers) -> Claimed:
        """The claims, and their rows noted for the settlements to come."""
        if self.line is None:
            return Claimed([], self.next_due)
        rows = self.line.rows()
        ranks = [row[_RANK] for row in rows]
        return Claimed(_claims(self, rows, numbers), self.next_due, ranks)


_SEQ, _RANK, _ID, _LANE, _SIZE, _REST, _LOCK_IN_REST = 0, 1, 2, 3, 4, 9, 0


def take(unit: Unit, ask: Ask, view: View, now: int) -> Taken:
    """Start the first in line."""
    lanes = view.ready_lanes
    if not lanes or ask.limit <= 0:
        return Taken(ask.worker_id, None, {}, {}, view.next_due)
    line = _first_in_line(unit, lanes, ask.limit)
    started = {"worker": ask.worker_id, "now": now, "seqs": line.seqs}
    unit.db.execute(CLAIMS["start"], started)
    if line.expiring:
        unit.db.execute(CLAIMS["no_longer_expiring"], (line.seqs,))
    fences = _give_fences(unit, line) if line.locked else {}
    look_in = start(unit, line.seqs, now) if line.rated else None
    dues = [seconds for seconds in (view.next_due, look_in) if seconds is not None]
    for lane, number in _by_lane(lanes, line).items():
        unit.tally.move(lane, READY, RUNNING, number)
    return Taken(ask.worker_id, line, fences, unit.lanes.by_id, min(dues, default=None))


def _first_in_line(unit: Unit, lanes: Sequence[int], limit: int) -> ReadyRows:
    sql = CLAIMS["first_in_lane"] if len(lanes) == 1 else CLAIMS["first_in_line"]
    asked = {"lanes": as_json(lanes), "limit": limit}
    try:
        return ReadyRows(*unit.db.execute(sql, asked).fetchone())
    except sqlite3.DataError:  # more than a gigabyte of payloads in one go
        return _first_in_line(unit, lanes, max(1, limit // 4))


def _by_lane(lanes: Sequence[int], line: ReadyRows) -> Mapping[int, int]:
    """How many come from which lane."""
    if len(lanes) == 1:
        return {lanes[0]: line.number}
    return Counter(row[_LANE] for row in orjson.loads(line.meta))


def _give_fences(unit: Unit, line: ReadyRows) -> dict[int, int]:
    """Number the holders of locks: every number is larger than all given before."""
    locked = [
        row[_SEQ]
        for row in line.rows()
        if isinstance(row[_REST], list) and row[_REST][_LOCK_IN_REST] is not None
    ]
    (last,) = unit.db.execute(STATS["next_fences"], (len(locked),)).fetchone()
    fences = dict(zip(locked, range(last - len(locked) + 1, last + 1), strict=True))
    run_many(unit.db, CLAIMS["give_fences"], list(fences.items()))
    return fences


def _claims(taken: Taken, rows: Sequence[list[Json]], numbers: RowNumbers) -> list[Claim]:
    """Claims by the thousand: built as plain tuples, which takes half the time."""
    worker_id, fences = taken.worker_id, taken.fences
    lanes = {lane.id: (lane.queue, lane.priority) for lane in taken.lanes.values()}
    gated = [row[_SEQ] for row in rows if (rest := row[_REST]) and (rest == 1 or rest[-1])]
    numbers.learn([row[_ID] for row in rows], [row[_SEQ] for row in rows], gated)
    return [
        tuple.__new__(Claim, (
            task_id, attempt + 1, worker_id, name, *lanes[lane], payload, 0, max_retries, 0,
            None if timeout is None else float(timeout), None, None, None, _SUBMITTED, None, None,
            False,
        ))
        if rest is None or rest == 1
        else _claim_with(
            rest, task_id, attempt + 1, worker_id, name, lanes[lane], payload, max_retries,
            timeout, fences.get(seq),
        )
        for seq, _, task_id, lane, _, attempt, name, max_retries, timeout, rest, payload
        in rows
    ]  # fmt: skip


def _claim_with(
    rest: list[Json],
    task_id: TaskId,
    attempt: int,
    worker_id: WorkerId,
    name: str,
    lane: tuple[str, Priority],
    payload: bytes,
    max_retries: int,
    timeout: str | None,
    fence: int | None,
) -> Claim:
    """A claim with a lock, an earlier attempt, or anything else that is not plain."""
    lock, charged, crash_count, retry, cause, trace, owner, _ = rest
    return Claim(
        task_id, attempt, worker_id, name, *lane, payload, charged, max_retries, crash_count,
        None if timeout is None else float(timeout), retry, lock, fence, _CAUSES[cause], trace,
        owner, False,
    )  # fmt: skip
