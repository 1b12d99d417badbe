"""A document as it will be: read, changed in memory, written if nobody has written it meanwhile.

Every step that decides something reads documents, changes drafts of them and writes all drafts
with one command. Each write names the version that was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pymongo import ReplaceOne, UpdateOne

from holdfast.core.attempt import Attempt
from holdfast.core.task import Json, Task, WorkerId
from holdfast.stores.kill_points import reached
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import (
    MARKS,
    Document,
    Place,
    fields,
    marks,
    place_of,
    state_in,
    task_of,
)
from holdfast.stores.mongo.history import (
    aside_of,
    attempt_entry,
    chapter_of,
    event_entry,
    is_full,
    weight_of,
)

LEAN: Final = {"payload": 0, "attempts": 0, "events": 0}
"""The projection for drafts: what they never change, or only add to, is not read."""
_HOLDING: Final = (Place.READY, Place.RUNNING)


class Draft:
    """One task's document in the making."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        self._before = document
        self._attempts: list[Document] = []
        self._events: list[Document] = []
        self._others: Document = {}
        self.task = task_of(document)
        self.place = Place(document["place"])

    @property
    def is_changed(self) -> bool:
        return bool(self._attempts or self._events or self._others) or self._is_moved

    @property
    def is_full(self) -> bool:
        """Whether its history must move out before it is written."""
        return is_full(self._before) and bool(self._attempts or self._events)

    @property
    def key(self) -> Document:
        """Which document, as it was read."""
        return {"_id": self.task.id, "version": self._before["version"]}

    @property
    def session(self) -> Json:
        """The session of the transaction that its handler has, or had, open."""
        return self._before.get("session")

    @property
    def contested(self) -> str | None:
        """The lock key that must be passed on once this is written."""
        freed = "holds" in self._before and self.place not in _HOLDING
        return self.task.lock if freed or self.place is Place.BLOCKED else None

    def change(self, task: Task) -> None:
        """The task is this now, in the same place."""
        self.task = task

    def move(self, task: Task, now: int) -> None:
        """The task is this now, wherever it belongs. An end owes its callback's notice, a new
        beginning takes it back.
        """
        self.task = task
        self.put(place_of(task, now))
        if task.callback is not None:
            ended = self.place is Place.DONE
            self._others |= {
                "callback_due": now if ended else None,
                "callback_tries": 0 if ended else None,
            }

    def put(self, place: Place) -> Draft:
        """The task is in this place now."""
        self.place = place
        self.task = replace(self.task, state=state_in(place, self.task.state))
        return self

    def note(
        self,
        now: int,
        kind: str,
        *,
        attempt: int | None = None,
        worker_id: WorkerId | None = None,
        detail: str | None = None,
    ) -> None:
        """Add an event."""
        number = self._before.get("noted", 0) + len(self._events)
        self._events.append(
            event_entry(number, now, kind, attempt=attempt, worker_id=worker_id, detail=detail)
        )

    def aside(self, now: int, kind: str, *, attempt: int, worker_id: WorkerId) -> Document:
        """The same beside the document, as a chapter to be written."""
        event = event_entry(0, now, kind, attempt=attempt, worker_id=worker_id)
        return aside_of(self._before, event)

    def end_attempt(self, attempt: Attempt) -> None:
        self._attempts.append(attempt_entry(attempt))

    def has_ended(self, number: int, worker_id: WorkerId, ended: str) -> bool:
        """Whether this very draft ends that attempt so."""
        found = (number, worker_id, ended)
        return any(found == (e["number"], e["worker_id"], e["ended"]) for e in self._attempts)

    def set(self, **others: Json) -> None:
        """Fields that are not the task's own; None takes one off."""
        self._others |= others

    def keep_lock(self, now: int) -> None:
        """Hold the lock though it has ended, until a claim at this instant or later passes it
        on: for whoever may not meet another writer of the lock.
        """
        if self.task.lock is not None and self.place not in _HOLDING:
            self._others |= {"holds": self.task.lock, "alarm": now}

    def update(self) -> UpdateOne:
        """The write, for whoever reads the same version."""
        before = self._before
        after = fields(self.task) | {"place": self.place.value}
        after |= marks(self.task, self.place, before["version"] + 1) | self._history_fields()
        after |= {"version": before["version"] + 1} | self._others
        known = {name for name in (*fields(task_of(before)), *MARKS) if name in before}
        gone = (known | {name for name, value in after.items() if value is None}) - {
            name for name, value in after.items() if value is not None
        }
        kept = {n: v for n, v in after.items() if v is not None and before.get(n) != v}
        kept.pop("payload", None)
        change: Document = {"$set": kept}
        if gone:
            change["$unset"] = dict.fromkeys(sorted(gone), "")
        if self.is_full:
            kept |= self._added
        elif self._added:
            change["$push"] = {name: {"$each": entries} for name, entries in self._added.items()}
        return UpdateOne(self.key, change)

    @property
    def _is_moved(self) -> bool:
        return task_of(self._before) != self.task or self._before["place"] != self.place.value

    @property
    def _added(self) -> Document:
        """What is added to the embedded history, or what it becomes when it was moved out."""
        every: Document = {"attempts": self._attempts, "events": self._events}
        return {name: entries for name, entries in every.items() if entries or self.is_full}

    def _history_fields(self) -> Document:
        added = [*self._attempts, *self._events]
        if not added:
            return {}
        base: Mapping[str, Json] = {} if self.is_full else self._before
        return {
            "noted": self._before.get("noted", 0) + len(self._events),
            "entries": base.get("entries", 0) + len(added),
            "weight": base.get("weight", 0) + weight_of(added),
        }


async def write(db: Collections, drafts: Sequence[Draft]) -> bool:
    """Write all drafts with one command (and one before, if a history is to move out). False: some
    were not written, because another was faster. Inside a transaction the server says so itself.
    """
    if not drafts:
        return True
    await _move_history_out(db, [draft for draft in drafts if draft.is_full])
    updates = [draft.update() for draft in drafts]
    done = await db.tasks.bulk_write(updates, ordered=False, session=db.session)
    return done.matched_count == len(drafts)


async def _move_history_out(db: Collections, drafts: Sequence[Draft]) -> None:
    """Copy full histories into chapters. If the draft is lost after that, no harm is done: what a
    chapter holds did happen.
    """
    if not drafts:
        return
    where = {"_id": {"$in": [draft.task.id for draft in drafts]}}
    found = db.tasks.find(where, {"attempts": 1, "events": 1}, session=db.session)
    chapters = [chapter_of(document) for document in await found.to_list()]
    writes = [ReplaceOne({"_id": c["_id"]}, c, upsert=True) for c in chapters]
    if writes:
        await db.history.bulk_write(writes, ordered=False, session=db.session)
    reached("chapter-written")
