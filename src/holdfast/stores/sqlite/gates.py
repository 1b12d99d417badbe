"""Gates: who passes is decided in `core.passing`; here lines are read and moves written.

What is known of a gate is in table `gate`, but for locks: of all tasks with one lock at most one
has the key in `holds`, which a unique index sees to. A blocked task has the name of the gate that
it stands before in `waits_for`.

Whoever changes anything (a task becomes eligible and stands before its first gate, another leaves)
gathers the gates that this touches, and goes through them once, for all tasks of the batch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import orjson

from holdfast.core import passing
from holdfast.core.gate import (
    Capacity,
    Count,
    Gate,
    GateKind,
    gates_from,
    latch_of,
)
from holdfast.core.passing import GateRow, Moves, next_stage
from holdfast.core.task import TaskId
from holdfast.stores.columns import span_us
from holdfast.stores.sqlite.gate_lines import (
    LOCK,
    Lines,
    gate_rows,
    read_lines,
)
from holdfast.stores.sqlite.queries import GATES, Row, as_json, run_many
from holdfast.stores.sqlite.tally import BLOCKED, READY, RUNNING
from holdfast.stores.sqlite.writer import Unit

_AT_ONCE: Final = 1000
_RATE: Final = f"{GateKind.RATE}:"
_NO_SPECS: Final[Mapping[str, Gate]] = {}


class Leaving(NamedTuple):
    """A task that leaves where it is: `place`, and which of its gates it has behind it if it is
    blocked. If it ends, `counts` are the latches that it counts down, and `awaited` is its id if
    somebody stood behind its end.
    """

    place: int
    lock: str | None
    gates: str | None
    passed: int = 0
    counts: str | None = None
    awaited: TaskId | None = None
    failed: bool = False


def first_gate(lock: str | None, gates: str | None) -> str | None:
    """The gate that a task stands before when it becomes eligible."""
    if gates is not None:
        return gates_from(gates)[0].name
    return None if lock is None else LOCK + lock


# Coming and going; each answers the gates that it touches.


def leave(unit: Unit, tasks: Iterable[Leaving], now: int) -> set[str]:
    """Let go of what these hold, and count their ends. Their rows hold no locks any more."""
    touched: set[str] = set()
    held, counts = Counter[str](), list[Count]()
    for task in tasks:
        if task.gates is not None:
            _let_go(task, held, touched)
        elif task.lock is not None:
            touched.add(LOCK + task.lock)
        if task.awaited is not None:
            counts.append(Count(latch_of(task.awaited), -1, task.failed))
        if task.counts is not None:
            counts += [Count(name, -1, task.failed) for name in orjson.loads(task.counts)]
    by_number = defaultdict[int, list[str]](list)
    for name, number in held.items():
        by_number[number].append(name)
    for number, names in by_number.items():
        unit.db.execute(GATES["let_go"], (number, as_json(names)))
    return touched | held.keys() | count(unit, counts, now)


def _let_go(task: Leaving, held: Counter[str], touched: set[str]) -> None:
    """Note which gates are held by one less. Latches never are, and rates only until the start."""
    gates = orjson.loads(task.gates or "[]")  # by far cheaper than `gates_from`, if keys are many
    if task.place == BLOCKED:
        kind, key, *_ = gates[task.passed]
        touched.add(f"{kind}:{key}")
        gates = gates[: task.passed]
    elif task.place not in (READY, RUNNING):
        return
    for kind, key, *_ in gates:
        if kind == GateKind.LOCK:
            touched.add(LOCK + key)
        elif kind != GateKind.LATCH and not (kind == GateKind.RATE and task.place == RUNNING):
            held[f"{kind}:{key}"] += 1


def count(unit: Unit, counts: Collection[Count], now: int, behind: str | None = None) -> set[str]:
    """Count latches up, which makes them, or down. The one that somebody is to stand `behind` is
    closed by that.
    """
    if not counts:
        return set()
    rows = {row.name: row for row in gate_rows(unit.db, {each.latch for each in counts})}
    for latch, by, failed in counts:
        if by > 0:
            rows.setdefault(latch, GateRow(latch))
        if row := rows.get(latch):
            if latch == behind:
                row.close()
            row.count(by, int(failed), now)
    _put(unit, rows.values())
    return set(rows)


def await_ends(unit: Unit, latches: Collection[str]) -> None:
    """Mark the tasks that these are named after: their ends must count."""
    if latches:
        unit.db.execute(GATES["await_ends"], (as_json(sorted(latches)),))


def count_again(unit: Unit, tasks: Sequence[Leaving]) -> None:
    """Ended tasks are started anew: close their own latches, and count up those that they name."""
    own = {latch_of(task.awaited) for task in tasks if task.awaited is not None}
    again, failed = Counter[str](), Counter[str]()
    for task in tasks:
        latches = orjson.loads(task.counts or "[]")
        again.update(latches)
        failed.update(latches if task.failed else ())
    if not (own or again):
        return
    rows = {row.name: row for row in gate_rows(unit.db, own | again.keys())}
    for name in own & rows.keys():
        rows[name].close_again()
    for name, number in again.items():
        rows.setdefault(name, GateRow(name)).count_again(number, failed[name])
    _put(unit, rows.values())


def set_capacities(unit: Unit, capacities: Collection[Capacity]) -> set[str]:
    if not capacities:
        return set()
    pinned = dict(capacities)
    rows = {name: GateRow(name, capacity=0) for name in pinned}
    rows |= {row.name: row for row in gate_rows(unit.db, pinned)}
    for name, capacity in pinned.items():
        rows[name].pinned = capacity
    _put(unit, rows.values())
    return set(rows)


def announce(unit: Unit, specs: Mapping[str, Gate]) -> set[str]:
    """New tasks say how many may pass: that counts for those who stand there, too."""
    if not specs:
        return set()
    said = as_json([(name, gate.capacity, span_us(gate.period)) for name, gate in specs.items()])
    (found,) = unit.db.execute(GATES["changed"], (said,)).fetchone()
    changed = set(orjson.loads(found))
    if changed:
        unit.db.execute(GATES["announce"], (said,))
    return changed


def start(unit: Unit, seqs: str, now: int) -> float | None:
    """Tasks begin to run: rates count starts. Answers in how many seconds to look at one again."""
    starts = dict(unit.db.execute(GATES["starts"], (seqs,)).fetchall())
    rows = gate_rows(unit.db, starts)
    for row in rows:
        row.start(starts[row.name], now)
    _put(unit, rows)
    looks = [(row.look_at - now) / 1e6 for row in rows if row.look_at is not None]
    return min(looks, default=None)


# Passing.


def go_through(unit: Unit, touched: Collection[str], now: int) -> None:
    """Let pass who may. Most gates have nobody before them: those are only forgotten, except rates,
    which have starts to forget.
    """
    names = {name for name in touched if name.startswith((LOCK, _RATE))}
    if len(names) == len(touched):
        let_pass(unit, names, now)
        return
    others = as_json([name for name in touched if name not in names])
    (contested,) = unit.db.execute(GATES["contested"], (others,)).fetchone()
    let_pass(unit, names.union(orjson.loads(contested)), now)
    unit.db.execute(GATES["forget_idle"], (others,))


def let_pass(
    unit: Unit, touched: set[str], now: int, specs: Mapping[str, Gate] = _NO_SPECS
) -> None:
    """Go through these gates, and those behind them, until nothing moves."""
    while touched:
        names, touched = next_stage(touched)
        found = read_lines(unit.db, names, now, specs)
        await_ends(unit, found.new_latches)
        _hand_on(unit, found)
        moves = passing.let_pass(found.lines, now)
        _move(unit, moves, found)
        touched |= moves.touched


def look_again(unit: Unit, now: int) -> None:
    """Go through those that time has opened."""
    asked = {"now": now, "limit": _AT_ONCE}
    (found,) = unit.db.execute(GATES["due"], asked).fetchone()
    let_pass(unit, set(orjson.loads(found)), now)


def _hand_on(unit: Unit, found: Lines) -> None:
    """Give locks to the first who stand there, who have no other gate."""
    back: list[Row] = []
    ready: list[int] = []
    for name, (_, first, _, _, _, seq, lane), holder in found.handed_on:
        if holder is not None:
            back.append((holder[-2], name, 0, 0))
            unit.tally.move(holder[-1], READY, BLOCKED)
            unit.passed.pop(holder[1], None)
        ready.append(seq)
        unit.tally.move(lane, BLOCKED, READY)
        unit.passed[first] = lane
    run_many(unit.db, GATES["park"], back)
    _make_ready(unit, ready)


def _move(unit: Unit, moves: Moves, found: Lines) -> None:
    """Those who step back first: a lock has one holder at any time."""
    for one in moves.back:
        unit.tally.move(found.rows[one.id].lane, READY, BLOCKED)
        unit.passed.pop(one.id, None)
    reranked: list[Row] = [
        (found.rows[one.id].seq, one.rank)
        for one in (*moves.ready, *moves.onward)
        if one.rank != found.rows[one.id].rank
    ]
    run_many(unit.db, GATES["rerank"], reranked)
    for parked in (moves.back, moves.onward):
        rows: list[Row] = []
        for one in parked:
            holds = any(gate.kind is GateKind.LOCK for gate in one.gates[: one.passed])
            before = one.gates[one.passed].name
            rows.append((found.rows[one.id].seq, before, one.passed, int(holds)))
        run_many(unit.db, GATES["park"], rows)
    for one in moves.ready:
        lane = found.rows[one.id].lane
        unit.tally.move(lane, BLOCKED, READY)
        unit.passed[one.id] = lane
    _make_ready(unit, [found.rows[one.id].seq for one in moves.ready])
    _put(unit, [row for row in moves.gates if row.kind is not GateKind.LOCK])
    if moves.idle:
        unit.db.execute(GATES["forget"], (as_json(moves.idle),))


def _make_ready(unit: Unit, seqs: Sequence[int]) -> None:
    if seqs:
        unit.db.execute(GATES["make_ready"], (as_json(seqs),))


def _put(unit: Unit, rows: Iterable[GateRow]) -> None:
    written: list[Row] = [
        (
            row.name, row.capacity, row.period, row.pinned, row.held,
            as_json(row.starts) if row.starts else None, row.left, row.failed, row.opened_at,
            row.look_at,
        )
        for row in rows
    ]  # fmt: skip
    run_many(unit.db, GATES["put"], written)
