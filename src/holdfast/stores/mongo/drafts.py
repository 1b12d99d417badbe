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
from holdfast.core.gate import Gate, GateKind, to_pass
from holdfast.core.passing import Parked
from holdfast.core.task import Json, State, Task, WorkerId
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
_UNSTARTED: Final = (Place.READY, Place.BLOCKED)


class Draft:
    """One task's document in the making."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        self._before = document
        self._attempts: list[Document] = []
        self._events: list[Document] = []
        self._others: Document = {}
        self.task = self._as_read = task_of(document)
        self.place = self.was = Place(document["place"])
        self.passed: int = document.get("passed", 0)
        self._kept = _kept_by(document)

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
    def gates(self) -> tuple[Gate, ...]:
        return to_pass(self.task.lock, self.task.gates)

    @property
    def parked(self) -> Parked:
        """As one who stands before a gate, or has passed them all."""
        gates = self.gates
        passed = self.passed if self.place is Place.BLOCKED else len(gates)
        return Parked(self.task.rank, self.task.id, gates, passed)

    @property
    def is_gated(self) -> bool:
        """Whether gates have something to do with it: its end is not its own affair."""
        task = self._as_read
        return bool(task.lock is not None or task.gates or task.counts or self.is_awaited)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody has come to stand behind it."""
        return "awaited" in self._before

    @property
    def is_unannounced(self) -> bool:
        return "unannounced" in self._before

    @property
    def leaves(self) -> bool:
        """Whether it goes from where it was, or lets go of what it kept."""
        return self.place is not self.was or "keeps" in self._before

    @property
    def ends(self) -> bool:
        """Whether its end is to be counted now."""
        kept = "keeps" in self._before
        return kept or (self.place is Place.DONE and self.was is not Place.DONE)

    @property
    def begins_again(self) -> bool:
        return self.was is Place.DONE and self.place is not Place.DONE

    @property
    def had_failed(self) -> bool:
        """Whether it had not ended well, as it was read."""
        return self._as_read.state is not State.COMPLETED

    @property
    def waited_for(self) -> str:
        """The gate that it stood before."""
        return str(self._before["waits_for"])

    @property
    def counts(self) -> Sequence[str]:
        """The latches that its end counts down."""
        return self._as_read.counts

    def let_go(self) -> Sequence[Gate]:
        """The gates that it held as it was read, and holds no longer."""
        held = {
            Place.READY: self.gates,
            Place.RUNNING: self.gates,
            Place.BLOCKED: self.gates[: self._before.get("passed", 0)],
            Place.DONE: self.gates if self._kept else (),
            Place.WAITING: (),
        }[self.was]
        self._kept = {}
        free = {GateKind.LATCH} if self.was in _UNSTARTED else {GateKind.LATCH, GateKind.RATE}
        return [gate for gate in held if gate.kind not in free]

    def change(self, task: Task) -> None:
        """The task is this now, in the same place."""
        self.task = task

    def move(self, task: Task, now: int) -> None:
        """The task is this now, wherever it belongs."""
        self.task = task
        self.put(place_of(task, now))

    def put(self, place: Place) -> Draft:
        """The task is in this place now."""
        self.place, self.passed = place, 0
        self.task = replace(self.task, state=state_in(place, self.task.state))
        return self

    def pass_to(self, to: Parked) -> Draft:
        """The task stands there now, or is ready."""
        self.put(Place.READY if to.next_gate is None else Place.BLOCKED)
        self.passed = to.passed
        self.task = replace(self.task, rank=to.rank)
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

    def keep_gates(self, now: int) -> bool:
        """Hold its gates though it has ended, until a claim at this instant or later lets go of
        them: for whoever may not meet another writer of a gate. Whether there is any.
        """
        if self.is_gated:
            self._kept = {"holds": self.task.lock, "alarm": now, "keeps": True}
        return self.is_gated

    def update(self) -> UpdateOne:
        """The write, for whoever reads the same version."""
        before = self._before
        after = fields(self.task) | {"place": self.place.value}
        version = before["version"] + 1
        after |= marks(self.task, self.place, version, self.passed) | self._kept
        after |= self._history_fields() | {"version": version} | self._others
        known = {name for name in (*fields(self._as_read), *MARKS) if name in before}
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
        return self._as_read != self.task or self.was is not self.place

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


def _kept_by(document: Mapping[str, Json]) -> Document:
    """What it kept that ended inside its handler's transaction."""
    if "keeps" not in document:
        return {}
    return {name: document[name] for name in ("holds", "alarm", "keeps") if name in document}


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
