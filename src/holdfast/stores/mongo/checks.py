"""Looks for what should not be: the questions behind `holdfast doctor`.

Documents are read one after the other while others write. So on a live store what looks wrong is
looked at again after a moment, and only what is still wrong is told.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from holdfast.core.gate import GateKind, key_of
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.passing import GateRow
from holdfast.core.task import Json, State, Task
from holdfast.core.trouble import Trouble
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import (
    MARKS,
    Place,
    lane_of,
    marks,
    task_of,
)
from holdfast.stores.mongo.drafts import Draft
from holdfast.stores.mongo.gates import row_of
from holdfast.stores.mongo.schema import BOARD, missing_indexes

_MOMENT: Final = 2.0
_SHOWN: Final = {"payload": 0, "result": 0, "events": 0, "attempts.error": 0}
_STATES: Final = {
    Place.WAITING: {State.QUEUED, State.RETRYING},
    Place.READY: {State.QUEUED},
    Place.BLOCKED: {State.BLOCKED},
    Place.RUNNING: {State.RUNNING},
    Place.DONE: TERMINAL,
}


async def problems(db: Collections, *, has_own_clock: bool) -> Sequence[str]:
    """Everything found, as sentences. Walks all tasks."""
    found = await _invariants(db)
    if found and not has_own_clock:
        await asyncio.sleep(_MOMENT)
        still = set(await _invariants(db))
        found = [problem for problem in found if problem in still]
    found += [
        Trouble(
            f"index {index.name} of {collection.name} is missing: what it serves, or keeps unique, "
            "does without.",
            code="missing_index",
            fix="`holdfast migrate` makes it.",
        )
        for collection, indexes in await missing_indexes(db)
        for index in indexes
    ]
    return found


async def _invariants(db: Collections) -> list[str]:
    board = await db.state.find_one({"_id": BOARD}) or {"lanes": []}
    lanes = frozenset(board["lanes"])
    gates: defaultdict[str, GateUse] = defaultdict(GateUse)
    found: list[str] = []
    told = await _chapters(db)
    async for document in db.tasks.find({}, _SHOWN):
        task, place = task_of(document), Place(document["place"])
        found += [f"task {task.id}: {problem}" for problem in _oddities(document, task, place)]
        found += _untold(document, task, told.pop(task.id, set()))
        if place not in (Place.DONE, Place.RUNNING) and document["lane"] not in lanes:
            found.append(
                f"task {task.id} is in a lane that the board does not name: nobody sees it"
            )
        if task.lock is not None or task.gates:
            draft = Draft(document)
            if place is Place.BLOCKED:
                gates[draft.waited_for].waiting.append(draft)
            for gate in draft.let_go():
                gates[gate.name].holders.append(draft)
    found += [f"the history of task {task_id} is kept, and the task is not" for task_id in told]
    return found + await _gates(db, gates)


def _oddities(document: Mapping[str, Json], task: Task, place: Place) -> Iterator[str]:
    """What of one document disagrees with the rest of it."""
    if task.state not in _STATES[place]:
        yield f"it is {task.state} and in place {place.value}"
        return
    wanted, there = (
        {name: _unversioned(name, found[name]) for name in MARKS if name in found}
        for found in (
            marks(task, place, document["version"], document.get("passed", 0)),
            document,
        )
    )
    for name in sorted({*wanted, *there}):
        if wanted.get(name) != there.get(name):
            yield f"its mark {name} is {there.get(name)!r} and should be {wanted.get(name)!r}"
    if document["lane"] != lane_of(task.queue, task.requires):
        yield f"its lane is {document['lane']!r}"
    if ("idempotent" in document) != ("idempotent_until" in document):
        yield "its idempotency key has no end"


def _unversioned(name: str, mark: Json) -> Json:
    """`ready` ends with the version it was written at, which others may have passed since."""
    return mark[:24] if name == "ready" else mark


def _untold(document: Mapping[str, Json], task: Task, before: set[int]) -> Sequence[str]:
    """Every attempt that has ended is in the history, and no other."""
    told = before | {entry["number"] for entry in document.get("attempts", ())}
    ended = task.attempt - (task.state is State.RUNNING)
    if told == set(range(1, ended + 1)):
        return ()
    return (f"task {task.id} had {ended} attempts that ended, and its history has {sorted(told)}",)


async def _chapters(db: Collections) -> dict[str, set[int]]:
    """Which attempts were moved out of each task's document."""
    told: dict[str, set[int]] = {}
    async for chapter in db.history.find({}, {"task": 1, "attempts.number": 1}):
        numbers = {entry["number"] for entry in chapter.get("attempts", ())}
        told.setdefault(chapter["task"], set()).update(numbers)
    return told


class GateUse:
    """Who holds a gate, and who stands before it."""

    def __init__(self) -> None:
        self.holders: list[Draft] = []
        self.waiting: list[Draft] = []

    def lock_problems(self) -> Iterator[str]:
        holders = sorted(draft.task.id for draft in self.holders)
        if len(holders) > 1:
            yield f"held by {', '.join(holders)}"
        if self.waiting and not holders:
            yield f"{len(self.waiting)} tasks wait for it and nobody holds it"
        first = min((draft.parked[:2] for draft in self.waiting), default=None)
        for holder in self.holders:
            is_last = holder.gates[-1].kind is GateKind.LOCK
            if first and holder.place is Place.READY and is_last and first < holder.parked[:2]:
                yield f"{holder.task.id} is ready and another comes before it"

    def problems(self, row: GateRow | None) -> Iterator[str]:
        if row is None:
            yield "its document is missing"
        elif row.kind is GateKind.LOCK:
            yield from self.lock_problems()
            if not (self.holders or self.waiting):
                yield "its document is left over"
        else:
            if row.held != len(self.holders):
                yield f"it says that {row.held} hold it, and {len(self.holders)} do"
            if self.waiting and row.look_at is None and row.room(0) > 0:
                yield f"{len(self.waiting)} tasks stand before it and it is open"
            if not self.waiting and row.is_idle():
                yield "its document is left over"


async def _gates(db: Collections, used: Mapping[str, GateUse]) -> list[str]:
    rows = {one["_id"]: row_of(one) async for one in db.gates.find({})}
    found = [
        f"gate {name}: {problem}"
        for name in sorted({*rows, *used})
        for problem in used.get(name, GateUse()).problems(rows.get(name))
    ]
    shut = [
        key_of(name)
        for name, row in rows.items()
        if row.kind is GateKind.LATCH and row.opened_at is None and row.look_at is None
    ]
    tasks = db.tasks.find({"_id": {"$in": shut}}, {"place": 1, "awaited": 1})
    async for one in tasks:
        if one["place"] == Place.DONE.value:
            found.append(f"gate latch:{one['_id']}: its task has ended and it is closed")
        elif "awaited" not in one:
            found.append(f"gate latch:{one['_id']}: the end of its task will not open it")
    return found
