"""Forgets tasks: on an operator's word (`discard`), and when they are old enough (`prune`).

A task and the chapters of its history go in one transaction. The server's own TTL indexes are told
the retentions, and a day more: they are for a store that nobody prunes. They know no chapters, so
prune looks for those whose task is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from pymongo import DeleteOne, UpdateOne
from pymongo.errors import OperationFailure

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import TaskFilter
from holdfast.ports.clock import Clock
from holdfast.stores.columns import as_time, span_us
from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place
from holdfast.stores.mongo.faults import is_away
from holdfast.stores.mongo.filters import query_of
from holdfast.stores.mongo.fleet import ALIVE
from holdfast.stores.mongo.schema import NEVER

_DAY: Final = 86_400
_SLICE: Final = 1_000


class Forgets(Connected):
    """`TaskStore.discard` and `prune`."""

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        super().__init__(url, clock=clock, schema=schema)
        self._kept_for: tuple[float, float] | None = None
        self._last_chapter = ""

    async def discard(self, where: TaskFilter, *, limit: int) -> int:
        async with self._server() as db:
            return await _forget(db, query_of(where, states=TERMINAL), "_id", limit)

    async def prune(self, *, retention: float, dead_letter_retention: float, limit: int) -> int:
        async with self._server() as db:
            now = await self._now_us(db)
            await self._tell_the_server(db, retention, dead_letter_retention)
            await _forget_used_up(db, now, now - span_us(retention))
            await _forget_latches(db, now - span_us(retention))
            self._last_chapter = await _forget_strays(db, self._last_chapter)
            gone = await _prune(db, "ended_on", now - span_us(retention), limit)
            too_old = now - span_us(dead_letter_retention)
            return gone + await _prune(db, "died_on", too_old, limit - gone)

    async def _tell_the_server(self, db: Collections, ended: float, died: float) -> None:
        """Set the TTL indexes; without the right to, prune does it all."""
        if self._clock is not None or self._kept_for == (ended, died):
            return
        try:
            for name, seconds in (("ended_on", ended), ("died_on", died)):
                after = int(min(seconds + _DAY, NEVER))
                index = {"name": name, "expireAfterSeconds": after}
                await db.tasks.database.command("collMod", db.tasks.name, index=index)
        except OperationFailure as error:
            if is_away(error):
                raise  # a shorter one that the server was told before must not stand
        self._kept_for = (ended, died)


async def _prune(db: Collections, mark: str, oldest: int, limit: int) -> int:
    """Dates are kept in milliseconds: the microseconds decide."""
    query = {mark: {"$lte": as_time(oldest)}, "finished_at": {"$lt": oldest}}
    return await _forget(db, query, mark, limit)


async def _forget(db: Collections, query: Document, order: str, limit: int) -> int:
    """Those that keep their gates still have to let go of them."""
    gone = 0
    query = query | {"keeps": {"$exists": False}}
    while gone < limit and await db.tasks.find_one(query, {"_id": 1}) is not None:
        count = min(_SLICE, limit - gone)
        gone += await atomically(db, partial(_forget_some, query=query, order=order, count=count))
    return gone


async def _forget_some(db: Collections, query: Document, order: str, count: int) -> int:
    line = db.tasks.find(query, {"_id": 1}, session=db.session).sort(order, 1).limit(count)
    ids = [one["_id"] for one in await line.to_list()]
    if ids:
        await db.tasks.delete_many({"_id": {"$in": ids}}, session=db.session)
        await db.history.delete_many({"task": {"$in": ids}}, session=db.session)
        await db.journal.delete_many({"task": {"$in": ids}}, session=db.session)
    return len(ids)


async def _forget_used_up(db: Collections, now: int, oldest: int) -> None:
    """Idempotency keys (of a running task when it has ended: its handler may be inside a
    transaction), and workers.
    """
    used_up = {"idempotent_until": {"$lte": now}, "place": {"$ne": Place.RUNNING.value}}
    change = {"$unset": {"idempotent": "", "idempotent_until": ""}, "$inc": {"version": 1}}
    some = await db.tasks.find(used_up, {"_id": 1}).limit(_SLICE).to_list()
    if some:
        writes = [UpdateOne(one | used_up, change) for one in some]
        await db.tasks.bulk_write(writes, ordered=False)
    await db.workers.delete_many({"beat_at": {"$lt": oldest}, "status": {"$nin": ALIVE}})


async def _forget_latches(db: Collections, oldest: int) -> None:
    """Those that opened long ago. One with somebody before it is to be looked at again."""
    opened: Document = {"opened_at": {"$lt": oldest}, "look_at": {"$exists": False}}
    some = await db.gates.find(opened, {"_id": 1}).limit(_SLICE).to_list()
    if some:
        await db.gates.bulk_write([DeleteOne(one | opened) for one in some], ordered=False)


async def _forget_strays(db: Collections, after: str) -> str:
    """Chapters whose task is not there, a slice at a time; returns where the next one begins."""
    pipeline: Sequence[Document] = [
        {"$match": {"task": {"$gt": after}}},
        {"$sort": {"task": 1}},
        {"$group": {"_id": "$task"}},
        {"$sort": {"_id": 1}},
        {"$limit": _SLICE},
    ]
    ids = [one["_id"] async for one in await db.history.aggregate(pipeline)]
    known = {one["_id"] async for one in db.tasks.find({"_id": {"$in": ids}}, {"_id": 1})}
    if strays := sorted(set(ids) - known):
        await db.history.delete_many({"task": {"$in": strays}})
        await db.journal.delete_many({"task": {"$in": strays}})
    return ids[-1] if len(ids) == _SLICE else ""
