"""Stores new tasks, all or none, and tells new ones from repeats.

Without keys nothing is looked up: the insert itself finds out whether an id is known. With keys the
holders are read first, and the unique indexes decide all races: a batch that meets a taken key has
written nothing, and is planned anew with what is there by then.

Tasks with a lock go in as blocked, and the key is passed on after that (`locks.py`).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pymongo.errors import BulkWriteError, DuplicateKeyError

from holdfast.core.task import Added, NewTask, State, TaskId
from holdfast.errors import StoreUnavailable
from holdfast.ports.clock import Clock
from holdfast.stores.columns import span_us
from holdfast.stores.keys import KeyBook, Plan, Seen
from holdfast.stores.mongo.batches import finish, insert_all
from holdfast.stores.mongo.chronicle import event_entry, weight_of
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
from holdfast.stores.mongo.drafts import taken_keys
from holdfast.stores.mongo.locks import pass_on
from holdfast.stores.mongo.points import reached
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.mongo.steps import Site, Steps, drive_async
from holdfast.stores.values import created

_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.2
"""Between two looks at a batch of somebody else's that is under way; in steps, and never in step
with another who waits for ours.
"""
_PATIENCE: Final = 60.0
"""Seconds after which a batch that others are in the way of all the time is given back."""
_SHOWN: Final = {
    "name": 1, "state": 1, "place": 1, "batch": 1, "staged_at": 1, "unique_key": 1, "unique": 1,
    "idempotent": 1, "idempotent_until": 1, "fingerprint": 1,
}  # fmt: skip


class Known(NamedTuple):
    """What was found of the batch's ids and keys."""

    ids: dict[TaskId, Document]
    unique: dict[tuple[str, str], TaskId]
    seen: dict[str, Seen]
    states: dict[TaskId, State]

    def staged(self) -> set[str]:
        """The batches that are under way and have one of these."""
        return {one["batch"] for one in self.ids.values() if one["place"] == Place.STAGED}


class Adds(Connected):
    """`TaskStore.add`."""

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        super().__init__(url, clock=clock, schema=schema)
        self._lanes: set[str] = set()

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        if not tasks:
            return []
        async with self._server() as db:
            window, pause = span_us(idempotency_window), _PAUSE
            began = time.monotonic()
            answers = await self._add(db, tasks, window, again=False)
            while answers is None:
                if time.monotonic() - began > _PATIENCE:
                    raise StoreUnavailable(
                        f"{self.url}: others were in the way of this submit for {_PATIENCE:.0f} "
                        "seconds, or it is too large for one transaction. Try again later, or "
                        "submit less at once."
                    )
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
                pause = min(2 * pause, _LONGEST_PAUSE)
                answers = await self._add(db, tasks, window, again=True)
            return answers

    async def _add(
        self, db: Collections, tasks: Sequence[NewTask], window: int, *, again: bool
    ) -> Sequence[Added] | None:
        """None if a key was taken meanwhile, or is in the hands of a batch under way."""
        now = await self._now_us(db)
        site = Site(db.tasks, db.history, db.state, None)
        known = await drive_async(look_up(tasks, also_ids=again), site)
        if under_way := known.staged():
            for batch in under_way:
                await finish(db, batch, now)
            return None
        book = KeyBook()
        book.seen |= known.seen
        plan = book.plan(tasks, known=known.ids, unique=known.unique, now=now, until=now + window)
        documents = [document_of(new, now, plan.seen) for new in plan.fresh]
        await drive_async(introduce({one["lane"] for one in documents}, self._lanes), site)
        await drive_async(release(plan, known, now), site)
        if not await _insert(db, documents):
            return None
        states = {TaskId(one["_id"]): State(one["state"]) for one in documents}
        return await _answers(db, plan, documents, known.states | states)


def introduce(lanes: set[str], known: set[str]) -> Steps[None]:
    """See to it that claimers know of these lanes before there is anything in them."""
    fresh = sorted(lanes - known)
    if fresh:
        change = {"$addToSet": {"lanes": {"$each": fresh}}}
        yield lambda site: site.state.update_one({"_id": BOARD}, change)
        known.update(fresh)
        reached("lane-known")


def look_up(tasks: Sequence[NewTask], *, also_ids: bool) -> Steps[Known]:
    """The holders of the batch's keys; and its ids, where the insert would not tell whether they
    are known, because a key may stop it.
    """
    keys = sorted({new.idempotency_key for new in tasks if new.idempotency_key is not None})
    wanted = {unique_mark(t.name, t.unique_key) for t in tasks if t.unique_key is not None}
    by_key = yield from _find("idempotent", keys)
    by_mark = yield from _find("unique", sorted(wanted))
    ids = sorted({new.id for new in tasks})
    may_clash = len(tasks) > 1 and (keys or wanted)
    by_id: Sequence[Document] = ()
    if also_ids or by_key or by_mark or may_clash:
        by_id = yield from _find("_id", ids)
    known = Known({}, {}, {}, {})
    for one in (*by_key, *by_mark, *by_id):
        task_id = TaskId(one["_id"])
        known.states[task_id] = State(one["state"])
        if "unique" in one:
            known.unique[one["name"], one["unique_key"]] = task_id
        if "idempotent" in one:
            until = one["idempotent_until"]
            known.seen[one["idempotent"]] = Seen(task_id, one.get("fingerprint"), until)
        if one["_id"] in ids or one["place"] == Place.STAGED:
            known.ids[task_id] = one
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
    """A new task as it goes in. Unless it `contends` for its lock, it waits for whoever claims next
    to see that it is due.
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
    if new.fingerprint is not None:
        document["fingerprint"] = new.fingerprint
    if new.idempotency_key is not None:
        document["idempotent"] = new.idempotency_key
        document["idempotent_until"] = seen[new.idempotency_key].until
    return document


def release(plan: Plan, known: Known, now: int) -> Steps[None]:
    """Take used-up idempotency keys off the tasks that had them."""
    stale = [key for key in plan.seen if key in known.seen]
    for key in stale:
        yield from _take_off(key, known.seen[key].task_id, now)
    if stale:
        reached("key-released")


def _take_off(key: str, holder: TaskId, now: int) -> Steps[None]:
    where = {"_id": holder, "idempotent": key, "idempotent_until": {"$lte": now}}
    change = {"$unset": {"idempotent": "", "idempotent_until": ""}, "$inc": {"version": 1}}
    yield lambda site: site.tasks.update_one(where, change, session=site.session)


async def _insert(db: Collections, documents: Sequence[Document]) -> bool:
    """Write all or none; False if a key is taken."""
    try:
        if len(documents) == 1:
            await db.tasks.insert_one(documents[0])
        elif documents:
            return await insert_all(db, documents)
    except DuplicateKeyError:
        return False
    except BulkWriteError as error:
        taken_keys(error)
        return False
    return True


async def _answers(
    db: Collections, plan: Plan, documents: Sequence[Document], states: dict[TaskId, State]
) -> Sequence[Added]:
    """The answers, with every task's state after the whole batch."""
    contested = {one["lock"] for one in documents if one["place"] == Place.BLOCKED}
    if contested:
        reached("added")
        await pass_on(db, contested)
        states |= await _states(db, {task_id for task_id, _ in plan.answers})
    return [Added(task_id, outcome, states[task_id]) for task_id, outcome in plan.answers]


async def _states(db: Collections, ids: Iterable[TaskId]) -> dict[TaskId, State]:
    found = db.tasks.find({"_id": {"$in": sorted(ids)}}, {"state": 1})
    return {TaskId(one["_id"]): State(one["state"]) async for one in found}
