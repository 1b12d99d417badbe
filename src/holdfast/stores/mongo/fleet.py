"""Workers: one document each, `_id` the worker's id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bson import ObjectId

from holdfast.core import fleet
from holdfast.core.attempt import Claim
from holdfast.core.fleet import Requests, WorkerInfo, WorkerStatus
from holdfast.core.task import Json, TaskId, WorkerId
from holdfast.stores.columns import maybe_time
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import WITHOUT_HISTORY, Document, task_of
from holdfast.stores.mongo.texts import safe_text

ALIVE: Final = sorted(status.value for status in fleet.ALIVE)


class KeepsWorkers(Connected):
    """All of `ports.store.WorkerStore`."""

    async def register(self, worker: WorkerInfo) -> None:
        async with self._server() as db:
            fresh = _document(worker, await self._now_us(db))
            await db.workers.update_one(
                {"_id": safe_text(worker.id)}, {"$setOnInsert": fresh}, upsert=True
            )

    async def beat(
        self,
        worker_id: WorkerId,
        *,
        load: int | None = None,
        status: WorkerStatus | None = None,
        blocked_by: str | None = None,
    ) -> bool:
        said: Document = {"beats": {"$add": ["$beats", 1]}, "beat_at": self._now_expression}
        if load is not None:
            said["load"] = {"$literal": load}
        if status is not None:
            said["status"] = status.value
        if blocked_by is not None:
            said["blocked_by"] = {"$literal": blocked_by}
        async with self._server() as db:
            done = await db.workers.update_one(alive(worker_id), [{"$set": said}])
            return done.matched_count == 1

    async def workers(self) -> Sequence[WorkerInfo]:
        async with self._server() as db:
            return await newest_workers(db)

    async def bury(self, worker_id: WorkerId, *, beats: int | None) -> bool:
        unchanged = {} if beats is None else {"beats": beats}
        async with self._server() as db:
            done = await db.workers.update_one(
                alive(worker_id) | unchanged, {"$set": {"status": WorkerStatus.DEAD.value}}
            )
            return done.matched_count == 1

    async def ask_to_drain(self, worker_id: WorkerId) -> bool:
        async with self._server() as db:
            done = await db.workers.update_one(
                alive(worker_id), {"$set": {"drain_requested": True}}
            )
            return done.matched_count == 1

    async def requests(self, worker_id: WorkerId) -> Requests:
        own = safe_text(worker_id)
        async with self._server() as db:
            itself = [{"$match": {"_id": own}}, {"$project": {"drain": "$drain_requested"}}]
            pipeline: Sequence[Document] = [
                {"$match": {"stop_on": own}},
                {"$project": {"stop": "$_id"}},
                {"$unionWith": {"coll": db.workers.name, "pipeline": itself}},
            ]
            found = await (await db.tasks.aggregate(pipeline)).to_list()
            stop = sorted(TaskId(one["stop"]) for one in found if "stop" in one)
            return Requests(stop, any(one.get("drain") for one in found))

    async def orphans(self, *, limit: int) -> Sequence[Claim]:
        async with self._server() as db:
            lost = await _lost_workers(db) if limit > 0 else ()
            if not lost:
                return ()
            line = db.tasks.find({"running_on": {"$in": lost}}, WITHOUT_HISTORY)
            found = await line.sort("_id", 1).limit(limit).to_list()
            return [Claim.of(task_of(one)) for one in found]


async def _lost_workers(db: Collections) -> Sequence[str]:
    """Workers that run something and are not there. The server reads one entry of its index for
    each.
    """
    pipeline: Sequence[Document] = [
        {"$match": {"running_on": {"$gte": ""}}},
        {"$sort": {"running_on": 1}},
        {"$group": {"_id": "$running_on"}},
    ]
    busy = [one["_id"] async for one in await db.tasks.aggregate(pipeline)]
    if not busy:
        return ()
    there = db.workers.find({"_id": {"$in": busy}, "status": {"$in": ALIVE}}, {"_id": 1})
    known = {one["_id"] async for one in there}
    return [worker for worker in busy if worker not in known]


def alive(worker_id: WorkerId) -> Document:
    """Finds the worker if it is alive."""
    return {"_id": safe_text(worker_id), "status": {"$in": ALIVE}}


async def newest_workers(db: Collections) -> tuple[WorkerInfo, ...]:
    found = db.workers.find({}).sort([("started_at", -1), ("seq", -1)])
    return tuple(worker_of(document) for document in await found.to_list())


def worker_of(found: Mapping[str, Json]) -> WorkerInfo:
    queues = found.get("queues")
    return WorkerInfo(
        id=WorkerId(found["_id"]),
        host=found["host"],
        pid=found["pid"],
        version=found["version"],
        queues=None if queues is None else tuple(queues),
        capabilities=frozenset(found["capabilities"]),
        capacity=found["capacity"],
        load=found["load"],
        status=WorkerStatus(found["status"]),
        beats=found["beats"],
        started_at=maybe_time(found["started_at"]),
        beat_at=maybe_time(found["beat_at"]),
        kind=found["kind"],
        drain_requested=found.get("drain_requested", False),
        blocked_by=TaskId(found.get("blocked_by", "")) or None,
    )


def _document(worker: WorkerInfo, now: int) -> Document:
    """`seq` tells which of two came later, where the clock does not."""
    return {
        "seq": ObjectId(),
        "host": safe_text(worker.host),
        "pid": worker.pid,
        "version": worker.version,
        "queues": None if worker.queues is None else list(worker.queues),
        "capabilities": sorted(worker.capabilities),
        "capacity": worker.capacity,
        "load": worker.load,
        "status": worker.status.value,
        "beats": worker.beats,
        "started_at": now,
        "beat_at": now,
        "kind": worker.kind,
    }
