"""Stores new tasks, all or none, and tells new ones from repeats.

One task without keys, lock and gates is one insert, which itself finds out whether the id is known.
Everything else is a transaction: the holders of the keys are read in it, and the unique indexes
decide all races. A batch that meets a key that was taken meanwhile has written nothing, and is
planned anew with what is there by then. Tasks with gates go in as blocked, and those who may pass
do so before the commit (`passing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from pymongo.errors import DuplicateKeyError

from holdfast.core.gate import gates_from, to_pass
from holdfast.core.task import Added, NewTask, State, SubmitOutcome, TaskId
from holdfast.ports.clock import Clock
from holdfast.stores.columns import span_us
from holdfast.stores.keys import KeyBook, Plan, Seen
from holdfast.stores.kill_points import reached
from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import (
    Document,
    Place,
    fields,
    marks,
    place_of,
    state_in,
    unique_mark,
)
from holdfast.stores.mongo.history import event_entry, weight_of
from holdfast.stores.mongo.passing import Effects, Moved, go_through
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.mongo.steps import Steps, drive_async
from holdfast.stores.values import created

_SHOWN: Final = {
    "name": 1, "state": 1, "unique_key": 1, "unique": 1, "idempotent": 1, "idempotent_until": 1,
    "fingerprint": 1,
}  # fmt: skip


class KnownKeys(NamedTuple):
    """What was found of the batch's ids and keys."""

    ids: set[TaskId]
    unique: dict[tuple[str, str], TaskId]
    seen: dict[str, Seen]
    states: dict[TaskId, State]


class AddBatch(NamedTuple):
    """What was added, and the answers to all submits but for the states."""

    documents: Sequence[Document]
    answers: Sequence[tuple[TaskId, SubmitOutcome]]
    states: dict[TaskId, State]

    def added(self) -> Sequence[Added]:
        return [Added(task_id, outcome, self.states[task_id]) for task_id, outcome in self.answers]


class Adds(Connected):
    """`TaskStore.add`."""

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        super().__init__(url, clock=clock, schema=schema)
        self._lanes: set[str] = set()

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        if not tasks:
            return []
        is_new = not any(map(_has_keys, tasks))
        async with self._server() as db:
            if len(tasks) == 1 and is_new and tasks[0].lock is None and not tasks[0].gates:
                with suppress(DuplicateKeyError):
                    return [await self._add_plain(db, tasks[0])]
                is_new = False

            async def submit(inside: Collections) -> tuple[Sequence[Added], Moved]:
                nonlocal is_new
                look, is_new = not is_new, False  # the second time some may be there
                window = span_us(idempotency_window)
                return await self._add(inside, tasks, window, Effects(), look_for_ids=look)

            answers, moved = await atomically(db, submit)
        self._tell(moved, but=(answer.task_id for answer in answers))
        return answers

    async def _add_plain(self, db: Collections, new: NewTask) -> Added:
        document = document_of(new, await self._now_us(db), {})
        await drive_async(introduce({document["lane"]}, self._lanes), db)
        await db.tasks.insert_one(document)
        return Added(new.id, SubmitOutcome.CREATED, State(document["state"]))

    async def _add(
        self,
        db: Collections,
        tasks: Sequence[NewTask],
        window: int,
        effects: Effects,
        *,
        look_for_ids: bool,
    ) -> tuple[Sequence[Added], Moved]:
        """Add tasks, and go through the gates that they or `effects` touch."""
        now = await self._now_us(db)
        batch = await drive_async(
            adding(tasks, now, now + window, self._lanes, look_for_ids=look_for_ids), db
        )
        for one in batch.documents:
            gates = gates_from(one.get("gates"))
            effects.name(gates)
            if one["place"] == Place.BLOCKED:
                effects.come(to_pass(one.get("lock"), gates)[0])
        moved = await go_through(db, effects, now)
        batch.states.update((task_id, task.state) for task_id, task in moved.items())
        return batch.added(), moved


def _has_keys(new: NewTask) -> bool:
    return new.unique_key is not None or new.idempotency_key is not None


def adding(
    tasks: Sequence[NewTask],
    now: int,
    until: int,
    lanes: set[str],
    *,
    look_for_ids: bool = True,
    contends: bool = True,
) -> Steps[AddBatch]:
    """Insert what is new, in the transaction of the site. Gates are for the caller."""
    known = yield from look_up(tasks, look_for_ids=look_for_ids)
    book = KeyBook()
    book.seen |= known.seen
    plan = book.plan(tasks, known=known.ids, unique=known.unique, now=now, until=until)
    documents = [document_of(new, now, plan.seen, contends=contends) for new in plan.fresh]
    yield from introduce({one["lane"] for one in documents}, lanes)
    yield from release(plan, known, now)
    if documents:
        yield lambda site: site.tasks.insert_many(documents, session=site.session)
    states = known.states | {TaskId(one["_id"]): State(one["state"]) for one in documents}
    return AddBatch(documents, plan.answers, states)


def introduce(lanes: set[str], known: set[str]) -> Steps[None]:
    """See to it that claimers know of these lanes before there is anything in them."""
    fresh = sorted(lanes - known)
    if fresh:
        change = {"$addToSet": {"lanes": {"$each": fresh}}}
        yield lambda site: site.state.update_one({"_id": BOARD}, change)
        known.update(fresh)
        reached("lane-known")


def look_up(tasks: Sequence[NewTask], *, look_for_ids: bool) -> Steps[KnownKeys]:
    """The holders of the batch's keys; and its ids, where the insert would not tell."""
    keys = sorted({new.idempotency_key for new in tasks if new.idempotency_key is not None})
    wanted = {unique_mark(t.name, t.unique_key) for t in tasks if t.unique_key is not None}
    ids = sorted({new.id for new in tasks})
    by_key = yield from _find("idempotent", keys)
    by_mark = yield from _find("unique", sorted(wanted))
    by_id = yield from _find("_id", ids if look_for_ids else [])
    known = KnownKeys({TaskId(one["_id"]) for one in by_id}, {}, {}, {})
    for one in (*by_key, *by_mark, *by_id):
        task_id = TaskId(one["_id"])
        known.states[task_id] = State(one["state"])
        if "unique" in one:
            known.unique[one["name"], one["unique_key"]] = task_id
        if "idempotent" in one:
            until = one["idempotent_until"]
            known.seen[one["idempotent"]] = Seen(task_id, one.get("fingerprint"), until)
    return known


def _find(field: str, values: Sequence[str]) -> Steps[Sequence[Document]]:
    if not values:
        return ()
    where = {field: {"$in": values}}
    found: Sequence[Document]
    found = yield lambda site: site.tasks.find(where, _SHOWN, session=site.session).to_list()
    return found


def document_of(
    new: NewTask, now: int, seen: Mapping[str, Seen], *, contends: bool = True
) -> Document:
    """A new task as it goes in. Unless it `contends` for its gates, it waits for whoever claims
    next to see that it is due.
    """
    task = created(new, now)
    place = place_of(task, now)
    if place is Place.BLOCKED and not contends:
        place = Place.WAITING
    event = event_entry(0, now, "submitted")
    document = fields(task) | marks(task, place, 1)
    document |= {
        "version": 1,
        "place": place.value,
        "state": state_in(place, task.state).value,
        "events": [event],
        "noted": 1,
        "entries": 1,
        "weight": weight_of([event]),
    }
    if new.gates and not contends:
        document["unannounced"] = True
    if new.fingerprint is not None:
        document["fingerprint"] = new.fingerprint
    if new.idempotency_key is not None:
        document["idempotent"] = new.idempotency_key
        document["idempotent_until"] = seen[new.idempotency_key].until
    return document


def release(plan: Plan, known: KnownKeys, now: int) -> Steps[None]:
    """Take used-up idempotency keys off the tasks that had them."""
    stale = [key for key in plan.seen if key in known.seen]
    for key in stale:
        yield from _take_off(key, known.seen[key].task_id, now)


def _take_off(key: str, holder: TaskId, now: int) -> Steps[None]:
    where = {"_id": holder, "idempotent": key, "idempotent_until": {"$lte": now}}
    change = {"$unset": {"idempotent": "", "idempotent_until": ""}, "$inc": {"version": 1}}
    yield lambda site: site.tasks.update_one(where, change, session=site.session)
