"""Reads gates, and who stands before them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import orjson

from holdfast.core.gate import (
    PARKED_CAP,
    Gate,
    GateKind,
    GateState,
    gates_read,
    kind_of,
)
from holdfast.core.passing import SLICE, GateRow, Line, Parked, state_of
from holdfast.core.task import Json, TaskId
from holdfast.stores.columns import span_us
from holdfast.stores.sqlite.queries import GATES, as_json
from holdfast.stores.sqlite.values import safe_text

LOCK: Final = f"{GateKind.LOCK}:"

_GATES: Final = 2


class TaskRow(NamedTuple):
    """Where a task is in the tables."""

    seq: int
    lane: int
    rank: int


Found = Sequence[Json]
"""Rank, id, gates, passed, lock, row number and lane of a task."""


@dataclass(slots=True)
class Lines:
    """Gates of one kind with those who stand before them. `new_latches` are of tasks that do not
    know yet that somebody stands behind their end. `handed_on` are locks of tasks that have no
    other gate, which is most: who passes, and who steps back for it. The statement that found
    them has decided all that there is to decide.
    """

    lines: list[Line] = field(default_factory=list)
    rows: dict[TaskId, TaskRow] = field(default_factory=dict)
    new_latches: list[str] = field(default_factory=list)
    handed_on: list[tuple[str, Found, Found | None]] = field(default_factory=list)

    def parked(self, found: Found) -> Parked:
        rank, task_id, gates, passed, lock, seq, lane = found
        self.rows[task_id] = TaskRow(seq, lane, rank)
        own = (Gate(GateKind.LOCK, lock),) if gates is None else gates_read(gates)
        return Parked(rank, task_id, own, passed)


def gate_rows(db: sqlite3.Connection, names: Collection[str]) -> list[GateRow]:
    """What is known of these gates, as far as anything is."""
    (found,) = db.execute(GATES["rows"], (as_json(sorted(names)),)).fetchone()
    rows = [GateRow(*row) for row in orjson.loads(found)]
    for row in rows:
        row.starts = [(number, last) for number, last in row.starts or ()]
    return rows


def gate_states(
    db: sqlite3.Connection, names: Collection[str] | None, *, after: str = "", limit: int
) -> list[GateState]:
    """Gates by name: those of which anything is known, and the locks that are held."""
    after = safe_text(after)
    if names is None:
        first = after[len(LOCK) :] if after.startswith(LOCK) else ""
        asked = {"after": after, "first": first, "limit": max(0, limit)}
        pages = (db.execute(GATES[page], asked) for page in ("page", "page_of_locks"))
        names = [name for page in pages for (name,) in page]
    wanted = {name for name in map(safe_text, names) if name > after}
    rows = {row.name: row for row in gate_rows(db, wanted)}
    holders = dict(map(tuple, db.execute(GATES["holders"], (as_json(sorted(wanted)),))))
    found = sorted(rows.keys() | holders)[: max(0, limit)]
    asked = {"names": as_json(found), "cap": PARKED_CAP}
    parked = dict(map(tuple, db.execute(GATES["parked"], asked)))
    return [
        state_of(rows.get(name) or GateRow(name, held=1), parked[name], holders.get(name))
        for name in found
    ]


def read_lines(
    db: sqlite3.Connection, names: Sequence[str], now: int, specs: Mapping[str, Gate]
) -> Lines:
    """The lines before these gates, which are of one kind. `specs` are what new tasks say of them;
    a gate of which nothing is known is as they say, or as the first who stands there says.
    """
    if kind_of(names[0]) is GateKind.LOCK:
        return _lock_lines(db, names)
    rows = {row.name: row for row in gate_rows(db, names)}
    rooms = {name: rows[name].room(now) if name in rows else SLICE for name in names}
    found, lines = _first(db, rooms), Lines()
    unknown = [name for name in names if name not in rows and found[name]]
    if unknown and kind_of(names[0]) is GateKind.LATCH:
        rows |= _unknown_latches(db, unknown, now, lines)
    for name in names:
        parked = [lines.parked(each) for each in found[name]]
        if name not in rows and parked:
            spec = specs.get(name) or parked[0].gates[parked[0].passed]
            rows[name] = GateRow(name, spec.capacity, span_us(spec.period))
        if name in rows:
            most = rows[name].room(now) + 1 if rooms[name] == SLICE else len(parked)
            lines.lines.append(Line(rows[name], parked[:most]))
    return lines


def _first(db: sqlite3.Connection, rooms: Mapping[str, int]) -> dict[str, list[Found]]:
    """Who stands first before each of the gates: as many as have room, the first in any case. Of a
    whole slice one more, which tells whether the line goes on: a smaller room is full then.
    """
    by_room = defaultdict[int, list[str]](list)
    for name, room in rooms.items():
        by_room[room].append(name)
    found: dict[str, list[Found]] = {}
    for room, names in by_room.items():
        asked = {"names": as_json(names), "most": room + 1 if room == SLICE else max(1, room)}
        (lines,) = db.execute(GATES["lines"], asked).fetchone()
        found.update(orjson.loads(lines))
    return found


def _lock_lines(db: sqlite3.Connection, names: Sequence[str]) -> Lines:
    (found,) = db.execute(GATES["lock_lines"], (as_json(names),)).fetchone()
    lines = Lines()
    for name, first, held_by in orjson.loads(found):
        if first[_GATES] is None and (held_by is None or held_by[_GATES] is None):
            lines.handed_on.append((name, first, held_by))
            continue
        row = GateRow(name, held=0 if held_by is None else 1)
        holder = None if held_by is None else lines.parked(held_by)
        lines.lines.append(Line(row, [lines.parked(first)], _that_may_be_overtaken(holder)))
    return lines


def _that_may_be_overtaken(holder: Parked | None) -> Parked | None:
    if holder is None or holder.gates[-1].kind is not GateKind.LOCK:
        return None
    return holder._replace(passed=len(holder.gates))


def _unknown_latches(
    db: sqlite3.Connection, names: Sequence[str], now: int, lines: Lines
) -> dict[str, GateRow]:
    """Latches that nobody made: of tasks that will open them, or open."""
    (found,) = db.execute(GATES["unfinished"], (as_json(names),)).fetchone()
    lines.new_latches = orjson.loads(found)
    rows = {name: GateRow(name, opened_at=now, is_kept=False) for name in names}
    return rows | {name: GateRow(name, left=1) for name in lines.new_latches}
