"""Writes how attempts ended.

Nearly all succeed and have no gate and no unique key: one guarded statement writes
them all. Where many fail alike and are retried, two such statements do. If these did not reach
every row, somebody was late, repeated itself or has one of these; then each settlement of the batch
is looked at.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import orjson

from holdfast.core.attempt import CLASHES, Refusal, Report, Settlement, clashed
from holdfast.core.gate import gates_from, gates_text, standing_behind, to_pass
from holdfast.core.lifecycle import TERMINAL, cancelled_instead
from holdfast.core.record import Changes
from holdfast.core.task import AttemptEnd, State, TaskId, WorkerId
from holdfast.stores.columns import error_text, progress_text, span_us
from holdfast.stores.kill_points import reached
from holdfast.stores.sqlite import records
from holdfast.stores.sqlite.gates import Leaving, count, first_gate, go_through, leave
from holdfast.stores.sqlite.queries import HISTORY, RECORDS, SETTLEMENTS, Row, as_json, run_many
from holdfast.stores.sqlite.rownumbers import RowNumbers
from holdfast.stores.sqlite.tally import BLOCKED, DONE, READY, RUNNING, WAITING
from holdfast.stores.sqlite.values import safe_text
from holdfast.stores.sqlite.writer import Unit

_COMPLETED: Final = State.COMPLETED
_ENDED_WELL: Final = AttemptEnd.COMPLETED

_FEW: Final = 8
"""Fewer that are alike are not worth two statements of their own."""

Common = tuple[bool, int, int, int, WorkerId]
"""Gated, charged, crash count, attempt, worker: what successes that are written at once share."""


class GoingOn(NamedTuple):
    """What attempts share that ended alike and after which their tasks go on."""

    attempt: int
    worker_id: WorkerId
    place: int
    state: str
    ended: str
    charged: int
    crash_count: int
    error: str | None
    cause: str | None


class SettlementBatch(NamedTuple):
    """Settlements made ready to write, on the thread of whoever saves: see `claims.Taken`.

    Plain successes of tasks that were claimed here, by what they share, their results as a JSON
    object by row number (`plain`); attempts that are followed by another, with their delays, where
    many are `alike`; and the `special` rest. A task's second settlement is special.
    """

    settlements: Sequence[Settlement]
    plain: Sequence[tuple[Common, str]]
    alike: Sequence[tuple[GoingOn, str]]
    special: Sequence[Settlement]

    @classmethod
    def of(cls, settlements: Sequence[Settlement], numbers: RowNumbers) -> SettlementBatch:
        plain: defaultdict[Common, dict[str, str | None]] = defaultdict(dict)
        again: defaultdict[GoingOn, dict[str, Settlement]] = defaultdict(dict)
        special: list[Settlement] = []
        take, is_gated = numbers.take, numbers.is_gated
        for settlement in settlements:
            (
                task_id,
                attempt,
                worker_id,
                state,
                ended,
                charged,
                crashes,
                result,
                error,
                _,
                _,
                why,
                _,
                also,
                _,
            ) = settlement
            number = take(task_id)
            is_plain = (
                state is _COMPLETED
                and ended is _ENDED_WELL
                and error is None is why
                and also is None
            )
            if number is not None and is_plain and (result is None or _fits_json(result)):
                text = None if result is None else result.decode()
                gated = is_gated(number)
                plain[gated, charged, crashes, attempt, worker_id][str(number)] = text
            elif number is not None and not is_gated(number) and _just_goes_on(settlement):
                again[_again(settlement)][str(number)] = settlement
            else:
                special.append(settlement)
        alike: list[tuple[GoingOn, str]] = []
        few: list[Settlement] = []
        for shared, ones in again.items():
            if len(ones) < _FEW:
                few += ones.values()
            else:
                delays = {number: span_us(one.delay) for number, one in ones.items()}
                alike.append((shared, as_json(delays)))
        if few:  # in the order in which they came: so do the refusals
            chosen = set(map(id, special + few))
            special = [one for one in settlements if id(one) in chosen]
        return cls(settlements, [(k, as_json(v)) for k, v in plain.items()], alike, special)

    @property
    def quick(self) -> int:
        return len(self.settlements) - len(self.special)


def save(unit: Unit, batch: SettlementBatch) -> Sequence[Refusal]:
    now = unit.now
    written = _complete(unit, batch, now) + _go_on_alike(unit, batch, now)
    special = batch.special if written == batch.quick else batch.settlements
    if not special:
        return []
    if len({s.task_id for s in special}) == len(special) and not any(s.also for s in special):
        return save_carefully(unit, special, now)
    # One task twice, or what they bring along may clash: the order decides.
    return [refusal for one in special for refusal in save_carefully(unit, [one], now)]


def _complete(unit: Unit, batch: SettlementBatch, now: int) -> int:
    """Write plain successes; how many were written by this."""
    written = 0
    for shared, results in batch.plain:
        gated, charged, crashes, attempt, worker_id = shared
        if gated:
            written += _complete_gated(unit, shared, results, now)
            continue
        values = (now, charged, crashes, results, attempt, worker_id)
        written += unit.db.execute(SETTLEMENTS["complete"], values).rowcount
    if written:
        unit.tally.ended(_COMPLETED.value, now, written)
    return written


def _complete_gated(unit: Unit, shared: Common, results: str, now: int) -> int:
    _, charged, crashes, attempt, worker_id = shared
    values = {"results": results, "attempt": attempt, "worker_id": worker_id}
    (found,) = unit.db.execute(SETTLEMENTS["to_complete"], values).fetchone()
    values |= {"now": now, "charged": charged, "crash_count": crashes}
    written = unit.db.execute(SETTLEMENTS["complete_gated"], values).rowcount
    leaving = (Leaving(*row) for row in orjson.loads(found))
    go_through(unit, leave(unit, leaving, now), now)
    return written


def _go_on_alike(unit: Unit, batch: SettlementBatch, now: int) -> int:
    """Write attempts that ended alike, and let their tasks go on; how many were."""
    written = 0
    for shared, delays in batch.alike:
        values = {**shared._asdict(), "now": now, "delays": delays}
        unit.db.execute(SETTLEMENTS["keep_alike"], values)
        lanes = Counter(lane for (lane,) in unit.db.execute(SETTLEMENTS["go_on_alike"], values))
        for lane, number in lanes.items():
            unit.tally.move(lane, RUNNING, shared.place, number)
        unit.tally.retrying(lanes.total() if shared.state == State.RETRYING.value else 0)
        written += lanes.total()
    return written


def _just_goes_on(settlement: Settlement) -> bool:
    return (
        settlement.state not in TERMINAL
        and settlement.result is None is settlement.reason
        and settlement.needs is None is settlement.also
        and settlement.behind is None
    )


def _again(settlement: Settlement) -> GoingOn:
    """For a task without gates."""
    is_due = span_us(settlement.delay) <= 0
    place, state = _next_place(settlement.state, None, is_due=is_due)
    cause = settlement.cause.value if settlement.cause else None
    return GoingOn(
        settlement.attempt, settlement.worker_id, place, state, settlement.ended.value,
        settlement.charged, settlement.crash_count, error_text(settlement.error), cause,
    )  # fmt: skip


def _fits_json(result: bytes) -> bool:
    """Whether SQLite gets these very bytes back out of a JSON string."""
    if b"\0" in result:
        return False
    try:
        return result.isascii() or bool(result.decode())
    except UnicodeDecodeError:
        return False


@dataclass(slots=True)
class _Changes:
    """What a batch comes to, gathered before it is written."""

    finish: list[Row] = field(default_factory=list)
    go_on: list[Row] = field(default_factory=list)
    behind: list[Row] = field(default_factory=list)
    attempts: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    clashes: list[Refusal] = field(default_factory=list)
    leaving: list[Leaving] = field(default_factory=list)
    parked: set[str] = field(default_factory=set)


def save_carefully(unit: Unit, settlements: Sequence[Settlement], now: int) -> Sequence[Refusal]:
    """Save settlements of different tasks one by one, as far as decisions go. One that brings
    something along comes alone.
    """
    found = _find(unit.db, [s.task_id for s in settlements])
    changes, brought = _Changes(), list[Changes]()
    for settlement in settlements:
        row = found.get(settlement.task_id)
        if row is not None and _holds_lease(row, settlement):
            one = cancelled_instead(settlement) if row["cancel_requested"] else settlement
            try:
                if one.also is not None:
                    also = records.check(unit, one.also)
                    count(unit, also.ups, now, one.behind)  # before its own end counts
            except CLASHES as clash:
                changes.clashes.append(clashed(one, clash))
                continue
            _settle(unit, row, one, now, changes)
            brought += [] if one.also is None else [one.also]
        elif row is None or not _was_saved(unit.db, row, settlement):
            changes.refusals.append(_refusal(row, settlement))
            if row is not None:
                changes.events.append(
                    (row["seq"], now, "late_result_refused", settlement.attempt,
                     settlement.worker_id, None)
                )  # fmt: skip
    _write(unit, changes, now)
    for each in brought:  # after the end of the task: its keys are free by now
        reached("end-written")
        records.commit(unit, each, is_counted_up=True)
    reached("written")
    return [*changes.refusals, *changes.clashes]


def _settle(
    unit: Unit, row: sqlite3.Row, settlement: Settlement, now: int, changes: _Changes
) -> None:
    charged = int(settlement.charged > row["charged"])
    error = error_text(settlement.error)
    cause = settlement.cause.value if settlement.cause else None
    reason = settlement.reason.value if settlement.reason else None
    totals = (settlement.charged, settlement.crash_count, settlement.result, error, reason, cause)
    has_ended = settlement.state in TERMINAL
    gates = row["gates"]
    if settlement.behind is not None and not has_ended:
        own = to_pass(row["lock_key"], ()) if gates is None else gates_from(gates)
        gates = gates_text(standing_behind(own, settlement.behind))
        changes.behind.append((row["seq"], gates))
    gate = first_gate(row["lock_key"], gates)
    if gate is not None or row["counts"] is not None or row["awaited"]:
        changes.leaving.append(_leaving(row, settlement.state if has_ended else None))
    if has_ended:
        unit.tally.ended(settlement.state.value, now)
        changes.finish.append(
            (row["seq"], settlement.state.value, settlement.ended.value, charged, *totals)
        )
        return
    changes.attempts.append(
        (row["seq"], row["attempt"], row["cause"], row["worker_id"], row["started_at"], now,
         settlement.ended.value, charged, error)
    )  # fmt: skip
    run_at = now + span_us(settlement.delay)
    place, state = _next_place(settlement.state, gate, is_due=run_at <= now)
    before = gate if place == BLOCKED else None
    changes.parked |= set() if before is None else {before}
    lane = _lane(unit, row["lane"], settlement.needs)
    unit.tally.move(lane, RUNNING, place)
    unit.tally.retrying(state == State.RETRYING.value)
    changes.go_on.append((row["seq"], place, state, run_at, *totals, lane, before))


def _leaving(row: sqlite3.Row, end: State | None) -> Leaving:
    if end is None:
        return Leaving(RUNNING, row["lock_key"], row["gates"])
    awaited = row["id"] if row["awaited"] else None
    failed = end is not _COMPLETED
    return Leaving(RUNNING, row["lock_key"], row["gates"], 0, row["counts"], awaited, failed)


def _lane(unit: Unit, lane_id: int, needs: str | None) -> int:
    """The lane of a task that is to go on."""
    if needs is None:
        return lane_id
    lane = unit.lanes.lookup(unit.db, lane_id)
    return unit.lane((lane.queue, lane.requires | {needs}, lane.priority)).id


def _next_place(state: State, gate: str | None, *, is_due: bool) -> tuple[int, str]:
    """Where a task goes that will be started again, and how that shows."""
    if not is_due:
        return WAITING, state.value
    return (READY, State.QUEUED.value) if gate is None else (BLOCKED, State.BLOCKED.value)


def _write(unit: Unit, changes: _Changes, now: int) -> None:
    run_many(unit.db, SETTLEMENTS["finish"], changes.finish, head=(now,))
    run_many(unit.db, SETTLEMENTS["go_on"], changes.go_on)
    run_many(unit.db, SETTLEMENTS["stand_behind"], changes.behind)
    run_many(unit.db, HISTORY["keep_attempts"], changes.attempts)
    run_many(unit.db, HISTORY["note"], changes.events)
    unit.tally.refused(len(changes.refusals))
    if changes.leaving:
        go_through(unit, leave(unit, changes.leaving, now) | changes.parked, now)


def report(unit: Unit, reports: Sequence[Report]) -> Sequence[Refusal]:
    now = unit.now
    found = _find(unit.db, [r.task_id for r in reports])
    refusals: list[Refusal] = []
    lines: list[Row] = []
    steps: list[Row] = []
    for told in reports:
        row = found.get(told.task_id)
        if row is None or not _holds_lease(row, told):
            refusals.append(_refusal(row, told))
            continue
        _write_report(unit.db, row["seq"], told)
        lines += [
            (row["seq"], now, "log", told.attempt, told.worker_id, safe_text(line))
            for line in told.logs
        ]
        steps += [(row["seq"], safe_text(step), result) for step, result in told.steps]
    run_many(unit.db, HISTORY["note"], lines)
    run_many(unit.db, RECORDS["record_steps"], steps)
    unit.tally.refused(len(refusals))
    return refusals


def _write_report(db: sqlite3.Connection, seq: int, told: Report) -> None:
    if told.progress is None and told.cost is None:
        return
    cost = told.cost
    values = {
        "seq": seq,
        "progress": progress_text(told.progress),
        "units": cost.units if cost else 0,
        "tokens_in": cost.tokens_in if cost else 0,
        "tokens_out": cost.tokens_out if cost else 0,
    }
    db.execute(SETTLEMENTS["report"], values)


def _find(db: sqlite3.Connection, ids: Sequence[TaskId]) -> dict[TaskId, sqlite3.Row]:
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return {row["id"]: row for row in cursor.execute(SETTLEMENTS["find"], (as_json(ids),))}


def _holds_lease(row: sqlite3.Row, by: Settlement | Report) -> bool:
    fence = (by.attempt, by.worker_id)
    return row["place"] == RUNNING and (row["attempt"], row["worker_id"]) == fence


def _was_saved(db: sqlite3.Connection, row: sqlite3.Row, settlement: Settlement) -> bool:
    """Whether this very settlement is in the history: in the row, or among the attempts kept."""
    ended = settlement.ended.value
    if row["place"] == DONE and row["ended"] is not None and row["attempt"] == settlement.attempt:
        return bool((row["worker_id"], row["ended"]) == (settlement.worker_id, ended))
    wanted = {
        "seq": row["seq"],
        "attempt": settlement.attempt,
        "worker": settlement.worker_id,
        "ended": ended,
    }
    return db.execute(HISTORY["was_saved"], wanted).fetchone() is not None


def _refusal(row: sqlite3.Row | None, late: Settlement | Report) -> Refusal:
    holder = row["worker_id"] if row is not None and row["place"] == RUNNING else None
    return Refusal(late.task_id, late.attempt, late.worker_id, holder)
