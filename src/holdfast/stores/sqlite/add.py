"""Takes new tasks in: which of them are new, where each begins, which keys it takes."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.core.gate import Gate, GateKind, gates_text, to_pass
from holdfast.core.task import Added, NewTask, State, SubmitOutcome, TaskId
from holdfast.errors import IdempotencyConflict
from holdfast.stores.columns import in_us, span_us
from holdfast.stores.sqlite.gates import announce, let_pass
from holdfast.stores.sqlite.queries import TASKS, Row, as_json, run_many
from holdfast.stores.sqlite.tally import BLOCKED, READY, WAITING
from holdfast.stores.sqlite.writer import Unit

NewRow = tuple[
    TaskId, int, int, int, str, bytes, int, int, str | None, str | None, int | None, str | None,
    str | None, str | None, str | None, str | None, str | None, str | None,
]  # fmt: skip
"""In the order of `add_tasks`: id, lane, place …"""

Answer = tuple[TaskId, SubmitOutcome]

_SPECLESS: Final = frozenset({GateKind.LATCH, GateKind.LOCK})


class Plan(NamedTuple):
    """What a batch amounts to: an answer for each submit, and the tasks to write."""

    answers: Sequence[Answer]
    fresh: Mapping[TaskId, NewTask]


class TakenIn(NamedTuple):
    """What was written of a batch; `repeated` were there before."""

    plan: Plan
    repeated: Collection[TaskId]

    def answers(self, db: sqlite3.Connection) -> Sequence[Added]:
        """An answer for each submit, with its state now."""
        states = _other_states(db, self.plan, self.repeated)
        return [
            Added(task_id, outcome, states.get(task_id, State.QUEUED))
            for task_id, outcome in self.plan.answers
        ]


def add(unit: Unit, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
    return take_in(unit, tasks, idempotency_window=idempotency_window).answers(unit.db)


def take_in(unit: Unit, tasks: Sequence[NewTask], *, idempotency_window: float) -> TakenIn:
    now = unit.now
    wanted = plan(unit.db, tasks, now)
    repeated = _insert(unit, wanted.fresh, now)
    _remember_keys(unit.db, wanted.fresh.values(), now + span_us(idempotency_window))
    return TakenIn(wanted, repeated)


def plan(db: sqlite3.Connection, tasks: Sequence[NewTask], now: int) -> Plan:
    """What to write, and what to answer; `IdempotencyConflict` if a key was used with another
    body.
    """
    unique = [[t.name, t.unique_key] for t in tasks if t.unique_key is not None]
    idempotent = [t.idempotency_key for t in tasks if t.idempotency_key is not None]
    if unique or idempotent:
        return _sort_out(db, tasks, unique, idempotent, now)
    fresh: dict[TaskId, NewTask] = {}
    for new in tasks:
        fresh.setdefault(new.id, new)
    return Plan([(new.id, SubmitOutcome.CREATED) for new in tasks], fresh)


def _sort_out(
    db: sqlite3.Connection,
    tasks: Sequence[NewTask],
    unique: Sequence[Sequence[str | None]],
    idempotent: Sequence[str],
    now: int,
) -> Plan:
    """Tell new tasks from those whose keys name another. Nothing was written yet, so a conflict
    leaves nothing behind.
    """
    known = states_of(db, [new.id for new in tasks])
    keys = {"keys": as_json(idempotent), "now": now}
    seen = {key: first for key, *first in db.execute(TASKS["idempotency_keys_seen"], keys)}
    taken = {
        (n, k): first for n, k, first in db.execute(TASKS["unique_keys_taken"], (as_json(unique),))
    }
    answers: list[Answer] = []
    fresh: dict[TaskId, NewTask] = {}
    for new in tasks:
        if new.id in known or new.id in fresh:
            answers.append((new.id, SubmitOutcome.CREATED))
        elif new.idempotency_key is not None and new.idempotency_key in seen:
            first, fingerprint = seen[new.idempotency_key]
            if fingerprint != new.fingerprint:
                raise IdempotencyConflict(new.idempotency_key, first)
            answers.append((first, SubmitOutcome.IDEMPOTENCY_KEY))
        elif new.unique_key is not None and (new.name, new.unique_key) in taken:
            answers.append((taken[new.name, new.unique_key], SubmitOutcome.UNIQUE_KEY))
        else:
            fresh[new.id] = new
            answers.append((new.id, SubmitOutcome.CREATED))
            if new.idempotency_key is not None:
                seen[new.idempotency_key] = [new.id, new.fingerprint]
            if new.unique_key is not None:
                taken[new.name, new.unique_key] = new.id
    return Plan(answers, fresh)


def _insert(unit: Unit, fresh: Mapping[TaskId, NewTask], now: int) -> Collection[TaskId]:
    """Write the tasks; returns those that were there already."""
    rows = [_row(unit, new, now) for new in fresh.values()]
    written = run_many(unit.db, TASKS["add_tasks"], rows, head=(now,))
    repeated: set[TaskId] = set()
    if written < len(rows):
        before = {"ids": as_json(list(fresh)), "written": written}
        repeated = {found for (found,) in unit.db.execute(TASKS["known_before"], before)}
        rows = [row for row in rows if row[0] not in repeated]
    called_back: list[Row] = [
        (new.id, new.callback)
        for new in fresh.values()
        if new.callback is not None and new.id not in repeated
    ]
    run_many(unit.db, TASKS["set_callbacks"], called_back)
    for (lane, place), number in Counter((row[1], row[2]) for row in rows).items():
        unit.tally.move(lane, None, place, number)
    gated = [
        (fresh[row[0]], row[2])
        for row in rows
        if row[2] == BLOCKED or fresh[row[0]].gates or fresh[row[0]].counts
    ]
    if gated:
        _put_before_gates(unit, gated, now)
    return repeated


def _put_before_gates(unit: Unit, gated: Sequence[tuple[NewTask, int]], now: int) -> None:
    """Let those pass who may. Whoever submits them tells of those that are ready."""
    rows: list[Row] = []
    specs: dict[str, Gate] = {}
    touched: set[str] = set()
    for new, place in gated:
        gates = to_pass(new.lock, new.gates)
        if place == BLOCKED:
            touched.add(gates[0].name)
        if new.gates or new.counts:
            text = gates_text(gates) if new.gates else None
            counts = as_json(new.counts) if new.counts else None
            rows.append((new.id, text, counts, gates[0].name if gates else None))
            specs |= {each.name: each for each in new.gates if each.kind not in _SPECLESS}
    run_many(unit.db, TASKS["set_gates"], rows)
    let_pass(unit, touched | announce(unit, specs), now, specs)
    for new, _ in gated:
        unit.passed.pop(new.id, None)


def _row(unit: Unit, new: NewTask, now: int) -> NewRow:
    lane = unit.lane((new.queue, new.requires, new.priority)).id
    run_at = now
    if new.run_at is not None:
        run_at = in_us(new.run_at)
    elif new.delay:
        run_at = now + span_us(new.delay)
    place = WAITING if run_at > now else READY if new.lock is None and not new.gates else BLOCKED
    return (
        new.id, lane, place, run_at - new.head_start, new.name, new.payload, run_at,
        new.max_retries, None if new.timeout is None else repr(new.timeout), new.retry,
        _expires_at(new, now), new.unique_key, new.idempotency_key, new.lock,
        as_json(new.tags) if new.tags else None, new.owner, new.trace, new.parent_id,
    )  # fmt: skip


def _expires_at(new: NewTask, now: int) -> int | None:
    if new.expires_at is not None:
        return in_us(new.expires_at)
    return None if new.expires_in is None else now + span_us(new.expires_in)


def _remember_keys(db: sqlite3.Connection, fresh: Iterable[NewTask], until: int) -> None:
    rows: list[Row] = [
        (new.idempotency_key, new.id, new.fingerprint, until)
        for new in fresh
        if new.idempotency_key is not None
    ]
    run_many(db, TASKS["remember_idempotency_keys"], rows)


def _other_states(
    db: sqlite3.Connection, wanted: Plan, repeated: Collection[TaskId]
) -> Mapping[TaskId, State]:
    """The states of those that may not be `queued`: known before, or with gates."""
    doubtful = {
        task_id
        for task_id, _ in wanted.answers
        if task_id not in wanted.fresh
        or task_id in repeated
        or wanted.fresh[task_id].lock is not None
        or wanted.fresh[task_id].gates
    }
    return states_of(db, doubtful) if doubtful else {}


def states_of(db: sqlite3.Connection, ids: Collection[TaskId]) -> Mapping[TaskId, State]:
    found = db.execute(TASKS["states"], (as_json(list(ids)),))
    return {task_id: State(state) for task_id, state in found}
