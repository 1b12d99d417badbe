"""Who passes a gate, in the transaction that made room or made somebody come (`core.passing`).

What a transaction does to gates is gathered first (`Effects`): who lets go, who comes, what is
counted. Then the gates that it touches are gone through, kind by kind: read the gate and the first
who stand before it, decide, write. Of a lock's tasks at most one has the mark `holds`: a unique
index sees to it, whatever is decided here.

The end of a task opens its latch only if the task is marked `awaited`, so that others need not
look. Whoever comes first to stand behind an unfinished task marks it, and so meets whoever ends it
at the same time: the server lets only one of them commit. A task whose handler has a transaction
open must not be written, or the server would abort that; its latch is looked at again until the
task has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pymongo import UpdateOne

from holdfast.core.gate import Capacity, Count, Gate, GateKind, key_of, kind_of, latch_of
from holdfast.core.ids import is_task_id
from holdfast.core.passing import GateRow, Line, Parked, let_pass, next_stage
from holdfast.core.task import State, Task, TaskId
from holdfast.stores.columns import span_us
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place
from holdfast.stores.mongo.drafts import LEAN, Draft, write
from holdfast.stores.mongo.gates import read_rows, write_rows

_FIXED: Final = (GateKind.LOCK, GateKind.LATCH)
"""Nobody says how many pass these."""
_SOON: Final = 1_000_000
"""Until a latch is looked at again whose task must not be written."""

Moved = dict[TaskId, Task]
"""The tasks that gates let pass, or set back, as they are now."""


@dataclass(slots=True)
class Effect:
    """What a transaction does to one gate. `comer` is the gate as the first names it who came to
    stand before it, `named` as the newest submit does; `left` is how many let go of it. `again` are
    tasks started anew that it counts: 1 for each that had not gone well, else 0. `closes_anew`: it
    is counted up though it may have opened.
    """

    comer: Gate | None = None
    left: int = 0
    counts: list[Count] = field(default_factory=list)
    closes: bool = False
    closes_anew: bool = False
    again: list[int] = field(default_factory=list)
    named: Gate | None = None
    pin: Capacity | None = None
    look_at: int | None = None

    @property
    def is_up(self) -> bool:
        return bool(self.again) or any(count.by > 0 for count in self.counts)

    def new(self, name: str) -> GateRow | None:
        """The gate, if nobody has made it before and this makes it."""
        if self.comer is not None:
            return GateRow(name, self.comer.capacity, span_us(self.comer.period))
        if self.is_up:
            return GateRow(name)
        is_pinned = self.pin is not None and self.pin.capacity is not None
        return GateRow(name, capacity=0) if is_pinned else None

    def does_nothing(self, row: GateRow) -> bool:
        """Whether it only says what is known."""
        if self.named is None or self != Effect(named=self.named):
            return False
        return (row.capacity, row.period) == (self.named.capacity, span_us(self.named.period))

    def on(self, row: GateRow, now: int) -> None:
        row.held -= self.left
        if self.named is not None:
            row.capacity, row.period = self.named.capacity, span_us(self.named.period)
        if self.pin is not None:
            row.pinned = self.pin.capacity
        if self.closes_anew:
            row.close()
        for _, by, failed in self.counts:
            row.count(by, failed, now)
        if self.again:
            row.count_again(len(self.again), sum(self.again))
        if self.closes:
            row.close_again()


class Effects(dict[str, Effect]):
    """By gate, in the order in which things happen."""

    def __missing__(self, name: str) -> Effect:
        self[name] = effect = Effect()
        return effect

    def come(self, gate: Gate) -> None:
        effect = self[gate.name]
        effect.comer = effect.comer or gate

    def count(self, counts: Iterable[Count]) -> None:
        for count in counts:
            self[count.latch].counts.append(count)

    def name(self, gates: Iterable[Gate]) -> None:
        """A submit says how many may pass."""
        for gate in gates:
            if gate.kind not in _FIXED:
                self[gate.name].named = gate

    def pin(self, capacities: Iterable[Capacity]) -> None:
        for capacity in capacities:
            if kind_of(capacity.gate) not in _FIXED:
                self[capacity.gate].pin = capacity

    def follow(self, draft: Draft) -> None:
        """A task goes from where it was to where it is now."""
        if not draft.leaves:
            return
        for gate in draft.let_go():
            self[gate.name].left += 1
        if draft.was is Place.BLOCKED and kind_of(draft.waited_for) is not GateKind.LOCK:
            _ = self[draft.waited_for]  # a lock's holder stays
        if draft.is_unannounced:
            self.name(draft.task.gates)
        if draft.place is Place.BLOCKED:
            self.come(draft.gates[0])
        if draft.ends:
            own = [latch_of(draft.task.id)] if draft.is_awaited else []
            failed = int(draft.task.state is not State.COMPLETED)
            self.count(Count(latch, -1, failed) for latch in (*own, *draft.counts))
        if draft.begins_again and draft.is_awaited:
            self[latch_of(draft.task.id)].closes = True
        if draft.begins_again:
            for latch in draft.counts:
                self[latch].again.append(int(draft.had_failed))


async def write_and_let_pass(
    db: Collections, drafts: Sequence[Draft], now: int, effects: Effects | None = None
) -> Moved:
    """Write drafts, and let pass whom that makes room for, in the transaction of `db`."""
    effects = Effects() if effects is None else effects
    for draft in drafts:
        effects.follow(draft)
    await write(db, drafts)
    return await go_through(db, effects, now)


async def go_through(db: Collections, effects: Effects, now: int) -> Moved:
    """Go through the gates that were touched, and those behind them, until nothing moves."""
    moved: Moved = {}
    while effects:
        names, _ = next_stage(effects)
        stage = {name: effects.pop(name) for name in names}
        drafts: dict[TaskId, Draft] = {}
        if kind_of(names[0]) is GateKind.LOCK:
            lines = await _locks(db, stage, drafts)
        else:
            lines = await _lines(db, stage, drafts, now)
        moves = let_pass(lines, now)
        steps = [drafts[one.id].pass_to(one) for one in (*moves.back, *moves.ready, *moves.onward)]
        await write(db, steps)
        for row in moves.gates:
            row.look_at = stage[row.name].look_at or row.look_at
        await write_rows(db, moves.gates, moves.idle)
        moved |= {draft.task.id: draft.task for draft in steps}
        for one in moves.onward:
            effects.come(one.gates[one.passed])
    return moved


async def _lines(
    db: Collections, stage: Mapping[str, Effect], drafts: dict[TaskId, Draft], now: int
) -> Sequence[Line]:
    rows = await read_rows(db, stage)
    if kind_of(next(iter(stage))) is GateKind.LATCH:
        await _ask_tasks(db, stage, rows, now)
    lines = []
    for name, effect in stage.items():
        row = rows.get(name) or effect.new(name)
        if row is None or effect.does_nothing(row):
            continue
        effect.on(row, now)
        room = row.room(now)
        first = await _first(db, name, room + 1) if room or row.is_idle() else []
        drafts |= {draft.task.id: draft for draft in first}
        lines.append(Line(row, [draft.parked for draft in first]))
    return lines


async def _ask_tasks(
    db: Collections, stage: Mapping[str, Effect], rows: dict[str, GateRow], now: int
) -> None:
    """Make the latches that nobody has made: of unfinished tasks, which will open them, or open
    ones. Look at those again whose tasks could not be marked.
    """
    asked = {
        name: row
        for name, effect in stage.items()
        if _is_looked_at(row := rows.get(name)) or (row is None and (effect.comer or effect.is_up))
    }
    tasks = await _tasks(db, [key_of(name) for name in asked])
    marked = []
    for name, row in asked.items():
        task = tasks.get(key_of(name))
        is_unfinished = task is not None and task["place"] != Place.DONE.value
        if row is not None and not is_unfinished:
            row.count(-1, int(task is None or task["state"] != State.COMPLETED.value), now)
        if row is None and not stage[name].is_up:
            rows[name] = (
                GateRow(name, left=1)
                if is_unfinished
                else GateRow(name, opened_at=now, is_kept=False)
            )
        if is_unfinished and task is not None and "session" in task:
            stage[name].look_at = now + _SOON
        elif task is not None and (is_unfinished or row is not None):
            marked.append(task["_id"])
    if marked:
        change = {"$set": {"awaited": True}, "$inc": {"version": 1}}
        marks = [UpdateOne({"_id": task_id}, change) for task_id in marked]
        await db.tasks.bulk_write(marks, ordered=False, session=db.session)


def _is_looked_at(latch: GateRow | None) -> bool:
    return latch is not None and latch.opened_at is None and latch.look_at is not None


async def _tasks(db: Collections, keys: Iterable[str]) -> Mapping[str, Document]:
    ids = [key for key in keys if is_task_id(key)]
    if not ids:
        return {}
    shown = {"place": 1, "state": 1, "session": 1}
    found = db.tasks.find({"_id": {"$in": ids}}, shown, session=db.session)
    return {one["_id"]: one for one in await found.to_list()}


async def _locks(
    db: Collections, stage: Mapping[str, Effect], drafts: dict[TaskId, Draft]
) -> Sequence[Line]:
    """A lock that was let go has no holder; whom it keeps waiting is asked first."""
    waiters = await _first_of_each(db, [*stage])
    held = [name for name, effect in stage.items() if name in waiters or not effect.left]
    holders = await _holders(db, held)
    lines = []
    for name in stage:
        waiter, holder = waiters.get(name), holders.get(name)
        drafts |= {draft.task.id: draft for draft in (waiter, holder) if draft is not None}
        row = GateRow(name, held=int(holder is not None))
        first = [] if waiter is None else [waiter.parked]
        lines.append(Line(row, first, _that_may_be_overtaken(holder)))
    return lines


def _that_may_be_overtaken(holder: Draft | None) -> Parked | None:
    if holder is None or holder.place is not Place.READY:
        return None
    return holder.parked if holder.gates[-1].kind is GateKind.LOCK else None


async def _first(db: Collections, name: str, number: int) -> list[Draft]:
    """The first who stand before a gate."""
    line = db.tasks.find({"waits_for": name}, LEAN, session=db.session)
    return [Draft(one) for one in await line.sort("order", 1).limit(number).to_list()]


async def _first_of_each(db: Collections, names: Sequence[str]) -> Mapping[str, Draft]:
    """The first in line of each gate that has a line."""
    if len(names) == 1:
        return dict(zip(names, await _first(db, names[0], 1), strict=False))
    pipeline: Sequence[Document] = [
        {"$match": {"waits_for": {"$in": sorted(names)}}},
        {"$sort": {"waits_for": 1, "order": 1}},
        {"$group": {"_id": "$waits_for", "task": {"$first": "$$ROOT"}}},
        {"$project": {f"task.{name}": 0 for name in LEAN}},
    ]
    found = await (await db.tasks.aggregate(pipeline, session=db.session)).to_list()
    return {one["_id"]: Draft(one["task"]) for one in found}


async def _holders(db: Collections, names: Sequence[str]) -> Mapping[str, Draft]:
    if not names:
        return {}
    by_key = {key_of(name): name for name in names}
    found = db.tasks.find({"holds": {"$in": [*by_key]}}, LEAN, session=db.session)
    return {by_key[one["holds"]]: Draft(one) for one in await found.to_list()}
