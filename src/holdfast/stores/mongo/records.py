"""Records, the journal, and commits of several things: one document for each record and each step.

`_id` is kind and key. What is due has `due_kind` and `due_at`, and only that: their index holds
nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from holdfast.core.attempt import Report
from holdfast.core.record import (
    PAUSE,
    Changes,
    Delete,
    Due,
    Kept,
    Name,
    Put,
    Record,
    decided,
    in_order,
)
from holdfast.core.task import Added, TaskId
from holdfast.stores.columns import as_time, in_us, span_us
from holdfast.stores.kill_points import reached
from holdfast.stores.mongo.add import Adds
from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document
from holdfast.stores.mongo.passing import Effects, Moved
from holdfast.stores.mongo.texts import safe_text


class KeepsRecords(Adds):
    """`ports.records.RecordStore` and `JournalStore`."""

    async def records(
        self,
        kind: str,
        *,
        limit: int,
        keys: Collection[str] | None = None,
        group: str | None = None,
        after: Record | None = None,
        newest_first: bool = False,
    ) -> Sequence[Record]:
        if limit <= 0:
            return []
        if keys is not None:
            async with self._server() as db:
                named = {"_id": {"$in": [_id(kind, key) for key in keys]}}
                found = map(_record, await db.records.find(named).to_list())
                return in_order(
                    found, limit=limit, group=group, after=after, newest_first=newest_first
                )
        way = -1 if newest_first else 1
        where: Document = {"kind": kind}
        order = [("key", way)]
        if group is not None:
            where["group"] = safe_text(group)
            order = [("sort", way), *order]
        if after is not None:
            where |= _behind(after, [name for name, _ in order], "$lt" if newest_first else "$gt")
        async with self._server() as db:
            line = db.records.find(where).sort(order).limit(limit)
            return [_record(one) for one in await line.to_list()]

    async def take_due(self, kind: str, *, limit: int, lease: float) -> Due:
        async with self._server() as db:
            now = await self._now_us(db)
            taken: Sequence[Record] = ()
            first = await _first_due(db, kind)
            if limit > 0 and first is not None and first <= now:
                taking = partial(_take, kind=kind, limit=limit, now=now, until=now + span_us(lease))
                taken = await atomically(db, taking)
                first = await _first_due(db, kind)
            return Due(taken, None if first is None else max(0, first - now) / 1e6)

    async def commit(self, changes: Changes) -> Sequence[Added]:
        async with self._server() as db:
            answers, moved = await atomically(db, partial(self._write_changes, changes=changes))
        self._tell(moved, but=(answer.task_id for answer in answers))
        return answers

    async def journal(self, task_id: TaskId) -> Mapping[str, bytes]:
        async with self._server() as db:
            found = await db.journal.find({"task": task_id}).sort("number", 1).to_list()
            return {one["step"]: bytes(one["result"]) for one in found}

    async def _write_changes(
        self, db: Collections, changes: Changes
    ) -> tuple[Sequence[Added], Moved]:
        """All of it, in the transaction of these collections. A clash is raised before anything is
        written.
        """
        fresh, kept = await self._decided(db, changes)
        effects = Effects()
        effects.count((*fresh.ups, *fresh.downs))
        effects.pin(fresh.capacities)
        window = span_us(changes.idempotency_window)
        answers = await self._add(db, changes.tasks, window, effects, look_for_ids=True)
        reached("tasks-added")
        now = await self._now_us(db) if fresh.records else 0
        for change in fresh.records:
            await _write(db, change, kept, changes.id, now)
            reached("record-written")
        return answers

    async def _decided(
        self, db: Collections, changes: Changes
    ) -> tuple[Changes, Mapping[Name, Kept]]:
        """What to write of these, and what is kept of their records."""
        ids = {"_id": {"$in": sorted(new.id for new in changes.tasks)}}
        named = {"_id": {"$in": [_id(*name) for name in changes.names]}}
        known = await db.tasks.find(ids, {"_id": 1}, session=db.session).to_list()
        found = await db.records.find(named, session=db.session).to_list()
        kept = {(one["kind"], one["key"]): Kept(one["version"], one["by"]) for one in found}
        return decided(changes, kept, {TaskId(one["_id"]) for one in known}), kept


async def paused_queues(db: Collections) -> set[str]:
    return {one["key"] async for one in db.records.find({"kind": PAUSE}, {"key": 1})}


async def record_steps(db: Collections, reports: Sequence[Report]) -> None:
    """Add to the journals of these attempts' tasks; what is there already stays."""
    for one in reports:
        there = await db.journal.count_documents({"task": one.task_id}, session=db.session)
        for number, (step, result) in enumerate(one.steps, start=there):
            await db.journal.update_one(
                {"_id": f"{one.task_id}/{safe_text(step)}"},
                {"$setOnInsert": {
                    "task": one.task_id, "step": safe_text(step), "result": result,
                    "number": number,
                }},
                upsert=True,
                session=db.session,
            )  # fmt: skip


async def _first_due(db: Collections, kind: str) -> int | None:
    """When the first record of a kind is due: most of the time that is all there is to know."""
    found = await db.records.find_one({"due_kind": kind}, {"due_at": 1}, sort=[("due_at", 1)])
    return None if found is None else found["due_at"]


async def _take(db: Collections, kind: str, limit: int, now: int, until: int) -> Sequence[Record]:
    due = {"due_kind": kind, "due_at": {"$lte": now}}
    line = db.records.find(due, session=db.session).sort([("due_at", 1), ("key", 1)]).limit(limit)
    found = await line.to_list()
    if found:
        change = {"$set": {"due_at": until, "by": ""}, "$inc": {"version": 1}}
        ids = {"_id": {"$in": [one["_id"] for one in found]}}
        await db.records.update_many(ids, change, session=db.session)
    return [_record(one | {"version": one["version"] + 1, "due_at": until}) for one in found]


async def _write(
    db: Collections, change: Put | Delete, kept: Mapping[Name, Kept], by: str, now: int
) -> None:
    where = {"_id": _id(change.kind, change.key)}
    if isinstance(change, Delete):
        await db.records.delete_one(where, session=db.session)
        return
    old = kept.get((change.kind, safe_text(change.key)))
    document: Document = where | {
        "kind": change.kind,
        "key": safe_text(change.key),
        "version": 1 if old is None else old.version + 1,
        "document": change.document,
        "group": safe_text(change.group),
        "sort": change.sort,
        "by": by,
    }
    due = None if change.due_at is None else in_us(change.due_at)
    if due is None and change.due_in is not None:
        due = now + span_us(change.due_in)
    if due is not None:
        document |= {"due_kind": change.kind, "due_at": due}
    if old is None:
        await db.records.insert_one(document, session=db.session)
    else:
        await db.records.replace_one(where, document, session=db.session)


def _id(kind: str, key: str) -> str:
    return f"{kind}/{safe_text(key)}"


def _behind(after: Record, order: Sequence[str], side: str) -> Document:
    """What stands behind a record in this order: by (sort, key), or by key alone."""
    later_key = {"key": {side: after.key}}
    if order == ["key"]:
        return later_key
    return {"$or": [{"sort": {side: after.sort}}, {"sort": after.sort} | later_key]}


def _record(found: Document) -> Record:
    due = found.get("due_at")
    return Record(
        found["kind"], found["key"], found["version"], found["document"], found["group"],
        found["sort"], None if due is None else as_time(due),
    )  # fmt: skip
