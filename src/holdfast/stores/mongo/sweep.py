"""Finds what was left behind: by dead workers, and by processes that died between two writes.

Rescuers ask for orphans every few seconds, in every process that works. Before they are answered
this mends what converges: lock keys that nobody holds though some wait for them, and batches that
are neither in nor out. Whatever else can be left behind is in one document, and never half done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.core.attempt import Claim
from holdfast.ports.clock import Clock
from holdfast.stores.mongo.batches import finish
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, task_of
from holdfast.stores.mongo.fleet import ALIVE
from holdfast.stores.mongo.locks import pass_on

_WITHOUT_HISTORY: Final = {"attempts": 0, "events": 0}
_KEYS: Final = 1_000
"""How many lock keys one sweep looks at; the next one goes on from there."""


class Sweeps(Connected):
    """`WorkerStore.orphans`."""

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        super().__init__(url, clock=clock, schema=schema)
        self._last_key: str | None = None

    async def orphans(self, *, limit: int) -> Sequence[Claim]:
        async with self._server() as db:
            await self._mend_batches(db)
            await self._mend_locks(db)
            if limit <= 0:
                return ()
            lost = await _lost_workers(db)
            if not lost:
                return ()
            line = db.tasks.find({"running_on": {"$in": lost}}, _WITHOUT_HISTORY)
            found = await line.sort("_id", 1).limit(limit).to_list()
            return [Claim.of(task_of(one)) for one in found]

    async def _mend_batches(self, db: Collections) -> None:
        """Also where there are transactions: the server may have been a single one before."""
        staged = await _distinct(db, "batch", {"batch": {"$gt": ""}})
        settled = [one["_id"] async for one in db.batches.find({"counts": True}, {"_id": 1})]
        if staged or settled:
            now = await self._now_us(db)
            for batch in sorted({*staged, *settled}):
                await finish(db, batch, now)

    async def _mend_locks(self, db: Collections) -> None:
        after = {"$gte": ""} if self._last_key is None else {"$gt": self._last_key}
        keys = await _distinct(db, "waits_for", {"waits_for": after}, limit=_KEYS)
        self._last_key = keys[-1] if len(keys) == _KEYS else None
        await pass_on(db, keys)


async def _lost_workers(db: Collections) -> Sequence[str]:
    """Workers that run something and are not there."""
    busy = await _distinct(db, "running_on", {"running_on": {"$gte": ""}})
    if not busy:
        return ()
    there = db.workers.find({"_id": {"$in": busy}, "status": {"$in": [*ALIVE]}}, {"_id": 1})
    alive = {one["_id"] async for one in there}
    return [worker for worker in busy if worker not in alive]


async def _distinct(
    db: Collections, field: str, where: Document, *, limit: int | None = None
) -> list[str]:
    """The values of a mark, smallest first. The server reads one entry of its index for each."""
    pipeline: list[Document] = [
        {"$match": where},
        {"$sort": {field: 1}},
        {"$group": {"_id": f"${field}"}},
        {"$sort": {"_id": 1}},
    ]
    if limit is not None:
        pipeline.append({"$limit": limit})
    return [one["_id"] async for one in await db.tasks.aggregate(pipeline)]
