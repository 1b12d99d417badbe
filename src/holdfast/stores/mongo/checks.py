"""Looks for what should not be: the questions behind `holdfast doctor`.

Documents are read one after the other while others write. So on a live store what looks wrong is
looked at again after a moment, and only what is still wrong is told.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import Json, State, Task
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import (
    MARKS,
    Place,
    lane_of,
    marks,
    order_of,
    task_of,
)
from holdfast.stores.mongo.schema import BOARD, missing_indexes

_SKEW: Final = 2.0
"""Seconds between this host's clock and the server's that are worth a word."""
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
        f"index {index.name} of {collection.name} is missing. `holdfast migrate` makes it."
        for collection, indexes in await missing_indexes(db)
        for index in indexes
    ]
    return found if has_own_clock else [*found, *await _clock(db)]


async def _invariants(db: Collections) -> list[str]:
    board = await db.state.find_one({"_id": BOARD}) or {"lanes": []}
    lanes = frozenset(board["lanes"])
    keys: defaultdict[str, LockKey] = defaultdict(LockKey)
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
        if task.lock is not None:
            keys[task.lock].count(task, place)
    locks = {one["_id"] async for one in db.locks.find({}, {"_id": 1})}
    used = {key for key, of in keys.items() if of.is_used}
    found += [f"lock {key!r}: its document is missing, or left over" for key in locks ^ used]
    found += [f"the history of task {task_id} is kept, and the task is not" for task_id in told]
    return found + [f"lock {key!r}: {text}" for key, of in keys.items() for text in of.problems()]


def _oddities(document: Mapping[str, Json], task: Task, place: Place) -> Iterator[str]:
    """What of one document disagrees with the rest of it."""
    if task.state not in _STATES[place]:
        yield f"it is {task.state} and in place {place.value}"
        return
    wanted, there = (
        {name: _unversioned(name, found[name]) for name in MARKS if name in found}
        for found in (marks(task, place, document["version"]), document)
    )
    for name in sorted({*wanted, *there}):
        if wanted.get(name) != there.get(name):
            yield f"its mark {name} is {there.get(name)!r} and should be {wanted.get(name)!r}"
    if document["lane"] != lane_of(task.queue, task.requires):
        yield f"its lane is {document['lane']!r}"
    if "callback_due" in document and (place is not Place.DONE or task.callback is None):
        yield "it owes a callback and has not ended, or has no URL"
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


class LockKey:
    """The tasks of one lock key that are eligible."""

    def __init__(self) -> None:
        self.running: list[Task] = []
        self.ready: list[Task] = []
        self.blocked: list[Task] = []

    def count(self, task: Task, place: Place) -> None:
        kept = {
            Place.RUNNING: self.running, Place.READY: self.ready, Place.BLOCKED: self.blocked,
        }.get(place)  # fmt: skip
        if kept is not None:
            kept.append(task)

    @property
    def is_used(self) -> bool:
        return bool(self.running or self.ready or self.blocked)

    def problems(self) -> Iterator[str]:
        holders = [*self.running, *self.ready]
        if len(holders) > 1:
            yield f"held by {', '.join(sorted(task.id for task in holders))}"
        if self.blocked and not holders:
            yield f"{len(self.blocked)} tasks wait for it and nobody holds it"
        first = min((order_of(task.rank, task.id) for task in self.blocked), default=None)
        if first is not None and self.ready:
            (holder, *_) = self.ready
            if first < order_of(holder.rank, holder.id):
                yield f"{holder.id} is ready and another comes before it"


async def _clock(db: Collections) -> Sequence[str]:
    before = time.time()
    hello = await db.client.admin.command("hello")
    after = time.time()
    skew = (before + after) / 2 - hello["localTime"].timestamp()
    if abs(skew) <= _SKEW + (after - before) / 2:
        return ()
    which = "ahead of" if skew > 0 else "behind"
    told = f"this host's clock is {abs(skew):.1f} s {which} the server's."
    return (f"{told} Tasks go by the server's; ids and logs made here do not.",)
