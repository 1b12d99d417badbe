"""Starts tasks for a worker.

Four commands, whatever their number: read the board with the worker and the time; move what is due
(usually nothing is); read the first of the line; start them with one update. That update names
each task by its `ready` mark, which says which writing of the document was read: what another
started, moved or changed meanwhile is not matched, and what is matched is as it was read. If fewer
were started than asked, the claim's token tells which, and the line is read once more.

Tasks with a lock take two commands more. Their fence is drawn *after* they were started: a fence
drawn before could be handed out by a slow claimer when a later holder has a larger one already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from secrets import token_hex
from typing import Final, NamedTuple

from pymongo import ReturnDocument, UpdateOne

from holdfast.core.attempt import Claim, Claimed
from holdfast.core.task import Cause, Json, Priority, State, TaskId, WorkerId
from holdfast.errors import StoreError, WorkerGone
from holdfast.ports.clock import Clock
from holdfast.stores.mongo.alarms import ring_alarms
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place, parted
from holdfast.stores.mongo.fleet import ALIVE
from holdfast.stores.mongo.points import reached
from holdfast.stores.mongo.reach import Reach
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.mongo.scouting import Scout
from holdfast.stores.mongo.texts import safe_text

_MOST_REACHES: Final = 64
_SLICE: Final = 1_000
_SHOWN: Final = {"attempts": 0, "events": 0, "result": 0, "error": 0}


class _View(NamedTuple):
    """The board as a claim sees it."""

    now: int
    lanes: Sequence[str]


class Claims(Connected):
    """`TaskStore.claim`."""

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        super().__init__(url, clock=clock, schema=schema)
        self._reaches: dict[tuple[str, ...], Reach] = {}
        self._scout = Scout()

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        async with self._server() as db:
            view = await self._view(db, worker_id, queues, capabilities)
            await ring_alarms(db, view.now)
            claims = await self._take(db, view.lanes, worker_id, limit)
            if limit > 0 and len(claims) == limit:
                return Claimed(claims, 0.0)  # who got all they asked for may ask again at once
            return Claimed(claims, await _next_due(db, view))

    async def _view(
        self,
        db: Collections,
        worker_id: WorkerId,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
    ) -> _View:
        """What this worker may take, and now."""
        pipeline: Sequence[Document] = [
            {"$match": {"_id": BOARD}},
            {"$set": {"now": "$$NOW", "asking": {"$literal": safe_text(worker_id)}}},
            {"$lookup": {
                "from": db.workers.name, "localField": "asking", "foreignField": "_id",
                "as": "worker",
            }},
        ]  # fmt: skip
        found = await (await db.state.aggregate(pipeline)).to_list()
        if not found:
            raise StoreError(f"{self.url} was dropped, or emptied, while it was open")
        board = found[0]
        if not any(worker["status"] in ALIVE for worker in board["worker"]):
            raise WorkerGone(worker_id)
        closed = set(board["paused"])
        lanes = []
        for lane in board["lanes"]:
            queue, requires = parted(lane)
            served = queues is None or queue in queues
            if served and queue not in closed and requires <= capabilities:
                lanes.append(lane)
        return _View(self._us(board["now"]), sorted(lanes))

    async def _take(
        self, db: Collections, lanes: Sequence[str], worker_id: WorkerId, limit: int
    ) -> Sequence[Claim]:
        """Start the first in line; where others were faster, those after them."""
        claims: list[Claim] = []
        while True:
            first = await self._first_in_line(db, lanes, limit - len(claims))
            started = await _start(db, first, worker_id, self._now_expression)
            claims += started
            if len(started) == len(first) or len(claims) >= limit:
                return claims

    async def _first_in_line(
        self, db: Collections, lanes: Sequence[str], limit: int
    ) -> Sequence[Document]:
        if not lanes:
            return ()
        reach = self._reach(lanes)
        await self._scout.look(db, reach, lanes, limit)
        if limit <= 0:
            return ()
        if not self._scout.is_needed:
            return await _read(db, {"ready_lane": among(lanes)}, limit)
        found: list[Document] = []
        seen = b""
        for bound in reach.bounds(limit):
            found += await _look(db, lanes, (seen, bound), limit - len(found))
            if bound is None or len(found) == limit:
                break
            seen = bound
        reach.learn([one["ready"] for one in found])
        return found

    def _reach(self, lanes: Sequence[str]) -> Reach:
        if len(self._reaches) > _MOST_REACHES:
            self._reaches.clear()
        return self._reaches.setdefault(tuple(lanes), Reach())


async def _look(
    db: Collections, lanes: Sequence[str], between: tuple[bytes, bytes | None], limit: int
) -> Sequence[Document]:
    """The first of a part of the line. Each lane is asked for by itself: a server that needs to be
    told where to stop does not narrow several lanes and a part by one index either.
    """
    first, end = between
    part: Document = {"$gte": first} if end is None else {"$gte": first, "$lt": end}
    every = [_read(db, {"ready_lane": lane, "ready": part}, limit) for lane in lanes]
    found = [one for some in await asyncio.gather(*every) for one in some]
    return sorted(found, key=itemgetter("ready"))[:limit]


async def _read(db: Collections, where: Document, limit: int) -> Sequence[Document]:
    line = db.tasks.find(where, _SHOWN, sort=[("ready", 1)], limit=limit)
    return await line.batch_size(limit + 1).to_list()


def among(lanes: Sequence[str]) -> Json:
    return lanes[0] if len(lanes) == 1 else {"$in": list(lanes)}


async def _next_due(db: Collections, view: _View) -> float | None:
    if not view.lanes:
        return None
    where = {"due_lane": among(view.lanes)}
    found = await db.tasks.find_one(where, {"due": 1}, sort=[("due", 1)])
    return None if found is None else max(0, found["due"] - view.now) / 1e6


async def _start(
    db: Collections, documents: Sequence[Document], worker_id: WorkerId, now: Json
) -> Sequence[Claim]:
    if not documents:
        return ()
    token = token_hex(8)
    change = _starting(worker_id, token, now)
    started = 0
    for first in range(0, len(documents), _SLICE):
        some = documents[first : first + _SLICE]
        done = await db.tasks.update_many(_as_read(some), change)
        started += done.modified_count
        reached("claimed")
    if started < len(documents):
        ids = [one["_id"] for one in documents]
        mine = await _ids(db, {"_id": {"$in": ids}, "claim": token})
        documents = [one for one in documents if one["_id"] in mine]
    fences = await _fences(db, [one for one in documents if "lock" in one], token)
    return [
        _claim_of(one, worker_id, fences.get(one["_id"]))
        for one in documents
        if "lock" not in one or one["_id"] in fences
    ]


def _as_read(documents: Sequence[Document]) -> Document:
    """The filter for these, if they still stand where they were read."""
    ids, ready = [one["_id"] for one in documents], [one["ready"] for one in documents]
    return {"_id": {"$in": ids}, "ready": {"$in": ready}}


def _starting(worker_id: WorkerId, token: str, now: Json) -> Sequence[Document]:
    """Started by the clock of *this* write: what was read before may be older than the end of the
    attempt that held the lock until then.
    """
    started = {
        "place": Place.RUNNING.value,
        "state": State.RUNNING.value,
        "worker_id": {"$literal": worker_id},
        "running_on": {"$literal": worker_id},
        "started_at": now,
        "claim": token,
        "attempt": {"$add": ["$attempt", 1]},
        "version": {"$add": ["$version", 1]},
    }
    return [{"$set": started}, {"$unset": ["ready", "ready_lane", "milestone", "alarm"]}]


async def _fences(db: Collections, locked: Sequence[Document], token: str) -> Mapping[str, int]:
    """Draw a fence for each; those that were taken away meanwhile are left out."""
    if not locked:
        return {}
    board = await db.state.find_one_and_update(
        {"_id": BOARD},
        {"$inc": {"fence": len(locked)}},
        projection={"fence": 1},
        return_document=ReturnDocument.AFTER,
    )
    reached("fence-drawn")
    assert board is not None
    first = board["fence"] - len(locked) + 1
    fences = {one["_id"]: first + number for number, one in enumerate(locked)}
    written = await db.tasks.bulk_write(
        [
            UpdateOne(
                {"_id": task_id, "claim": token, "place": Place.RUNNING.value},
                {"$set": {"fence": fence}, "$inc": {"version": 1}},
            )
            for task_id, fence in fences.items()
        ],
        ordered=False,
    )
    if written.matched_count == len(locked):
        return fences
    where = {"_id": {"$in": [*fences]}, "claim": token, "place": Place.RUNNING.value}
    mine = await _ids(db, where)
    return {task_id: fence for task_id, fence in fences.items() if task_id in mine}


async def _ids(db: Collections, where: Document) -> set[str]:
    return {one["_id"] async for one in db.tasks.find(where, {"_id": 1})}


def _claim_of(one: Mapping[str, Json], worker_id: WorkerId, fence: int | None) -> Claim:
    """A task as it was read, started."""
    return Claim(
        task_id=TaskId(one["_id"]),
        attempt=one["attempt"] + 1,
        worker_id=worker_id,
        name=one["name"],
        queue=one["queue"],
        priority=Priority(one["priority"]),
        payload=one["payload"],
        charged=one["charged"],
        max_retries=one["max_retries"],
        crash_count=one["crash_count"],
        timeout=one.get("timeout"),
        retry=one.get("retry"),
        lock=one.get("lock"),
        fence=fence,
        cause=Cause(one["cause"]),
        trace=one.get("trace"),
        owner=one.get("owner"),
        cancel_requested=False,
    )
