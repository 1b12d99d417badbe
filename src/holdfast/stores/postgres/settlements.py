"""Writes how attempts ended, and what running ones report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from holdfast.core.attempt import Refusal, Report, Settlement
from holdfast.core.gate import gates_from, gates_text, standing_behind, to_pass
from holdfast.core.ids import is_task_id
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import AttemptEnd, State, WorkerId
from holdfast.stores.columns import error_text, progress_text, span_us
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.values import safe_text

_COMPLETED: Final = State.COMPLETED
_ENDED_WELL: Final = AttemptEnd.COMPLETED


async def save(
    db: Connection, sql: Queries, settlements: Sequence[Settlement], now: int | None
) -> tuple[Sequence[Refusal], str | None]:
    """Also answers whom gates have let pass (`passed_on.py`)."""
    known = [s for s in settlements if is_task_id(s.task_id)]
    if len({s.task_id for s in known}) < len(known):
        return await _save_in_order(db, sql, settlements, now)
    plain, rest = _parted(known)
    late: list[Refusal] = []
    passed = None
    if known:
        worker = plain[0].worker_id if plain else None
        attempts = [s[1] for s in plain]
        found = await db.fetch(
            sql["save"],
            worker,
            [s[0] for s in plain],
            None if attempts.count(1) == len(attempts) else attempts,
            [s[7] for s in plain],
            *_columns(rest),
            now,
            [s.needs for s in rest] if any(s.needs for s in rest) else None,
        )
        order = [*plain, *rest]
        late = [_refusal(order[number - 1], holder) for number, holder in found if number]
        passed = next((text for number, text in found if not number), None)
    if len(known) < len(settlements):
        late += await _refuse_unknown(db, sql, settlements)
    if len(late) > 1:
        place = {one.task_id: n for n, one in enumerate(settlements)}
        late.sort(key=lambda refusal: place[refusal.task_id])
    return late, passed


async def stand_behind(db: Connection, sql: Queries, settlements: Sequence[Settlement]) -> None:
    """Give tasks that go on the latches that they stand behind from now on. Their leases hold, and
    are locked: the settlement that follows in this transaction finds these gates.
    """
    latches = {s.task_id: s.behind for s in settlements if s.behind and s.state not in TERMINAL}
    if not latches:
        return
    rows = []
    for task_id, lock, text in await db.fetch(sql["gates_of_tasks"], [*latches]):
        gates = standing_behind(gates_from(text), latches[task_id])
        passes = [gate.name for gate in to_pass(lock, gates)]
        rows.append((task_id, gates_text(gates), orjson.dumps(passes).decode()))
    await db.execute(sql["stand_behind"], *map(list, zip(*rows, strict=True)))


async def _save_in_order(
    db: Connection, sql: Queries, settlements: Sequence[Settlement], now: int | None
) -> tuple[Sequence[Refusal], str | None]:
    """One task twice: the order decides."""
    late: list[Refusal] = []
    passed = None
    async with db.transaction():
        for one in settlements:
            refused, more = await save(db, sql, [one], now)
            late += refused
            passed = more or passed
    return late, passed


def _parted(
    settlements: Sequence[Settlement],
) -> tuple[Sequence[Settlement], Sequence[Settlement]]:
    """Plain successes of one worker, and the rest."""
    worker = settlements[0].worker_id if settlements else None
    plain = [
        s for s in settlements
        if s[3] is _COMPLETED and s[4] is _ENDED_WELL and s[8] is None is s[11]
        and s[2] == worker
    ]  # fmt: skip
    if len(plain) == len(settlements):
        return plain, ()
    chosen = {s[0] for s in plain}
    return plain, [s for s in settlements if s[0] not in chosen]


def _columns(rest: Sequence[Settlement]) -> list[list[object] | None]:
    """In the order of `holdfast.save`, after the plain ones."""
    if not rest:
        return [None] * 12
    columns: list[list[object]] = [
        [s.attempt for s in rest],
        [s.worker_id for s in rest],
        [s.state.value for s in rest],
        [s.ended.value for s in rest],
        [s.charged for s in rest],
        [s.crash_count for s in rest],
        [s.result for s in rest],
        [error_text(s.error) for s in rest],
        [span_us(s.delay) for s in rest],
        [s.cause.value if s.cause else None for s in rest],
        [s.reason.value if s.reason else None for s in rest],
    ]
    return [[s.task_id for s in rest], *map(_said_once, columns)]


def _said_once(column: list[object]) -> list[object]:
    """In a storm of failures nearly all columns have one value: to encode each would take longer
    than all else that is done here.
    """
    return column[:1] if column.count(column[0]) == len(column) else column


async def _refuse_unknown(
    db: Connection, sql: Queries, late: Sequence[Settlement | Report]
) -> list[Refusal]:
    """Text that is no id names no task: counted, and that is all."""
    unknown = [_refusal(each, None) for each in late if not is_task_id(each.task_id)]
    await db.execute(sql["count_refusals"], len(unknown))
    return unknown


def _refusal(late: Settlement | Report, holder: str | None) -> Refusal:
    return Refusal(
        late.task_id, late.attempt, late.worker_id, None if holder is None else WorkerId(holder)
    )


async def report(
    db: Connection, sql: Queries, reports: Sequence[Report], now: int | None
) -> Sequence[Refusal]:
    if not any(report.steps for report in reports):
        return await _report(db, sql, reports, now)
    if all(map(_is_of_steps, reports)):
        return await _report_steps(db, sql, reports, now)
    async with db.transaction():
        refused = await _report(db, sql, reports, now)
        late = {(refusal.task_id, refusal.attempt, refusal.worker_id) for refusal in refused}
        steps = [(r.task_id, *step) for r in reports if r[:3] not in late for step in r.steps]
        ids, names, results = zip(*steps, strict=True) if steps else ((), (), ())
        await db.execute(sql["record_steps"], ids, list(map(safe_text, names)), results)
    return refused


def _is_of_steps(report: Report) -> bool:
    """Whether it says nothing but what steps came to."""
    return bool(report.steps) and report.progress is None is report.cost and not report.logs


async def _report_steps(
    db: Connection, sql: Queries, reports: Sequence[Report], now: int | None
) -> Sequence[Refusal]:
    told = [(r, *step) for r in reports if is_task_id(r.task_id) for step in r.steps]
    stale = []
    if told:
        by, names, results = zip(*told, strict=True)
        late = await db.fetch(
            sql["report_steps"],
            [r.task_id for r in by],
            _said_once([r.attempt for r in by]),
            _said_once([r.worker_id for r in by]),
            list(map(safe_text, names)),
            results,
        )
        stale = list(dict.fromkeys(by[row[0] - 1]._replace(steps=()) for row in late))
    stale += [r for r in reports if not is_task_id(r.task_id)]
    return await _report(db, sql, stale, now) if stale else ()  # says who has them, and counts


async def _report(
    db: Connection, sql: Queries, reports: Sequence[Report], now: int | None
) -> Sequence[Refusal]:
    known = [r for r in reports if is_task_id(r.task_id)]
    found = await db.fetch(
        sql["report"],
        [r.task_id for r in known],
        [r.attempt for r in known],
        [r.worker_id for r in known],
        [progress_text(r.progress) for r in known],
        [r.cost.units if r.cost else None for r in known],
        [r.cost.tokens_in if r.cost else None for r in known],
        [r.cost.tokens_out if r.cost else None for r in known],
        [_lines(r) for r in known],
        now,
    )
    refusals = [_refusal(known[number - 1], holder) for number, holder in sorted(map(tuple, found))]
    if len(known) < len(reports):
        refusals += await _refuse_unknown(db, sql, reports)
    return refusals


def _lines(told: Report) -> str:
    return orjson.dumps([safe_text(line) for line in told.logs]).decode()
