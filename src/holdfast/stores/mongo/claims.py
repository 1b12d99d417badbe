"""Starts tasks for a worker.

Four commands, whatever their number: read the board with the worker and the time; move what is due
(usually nothing is); read the first of the line; start them with one update. That update names
each task by its `ready` mark, which says which writing of the document was read: what another
started, moved or changed meanwhile is not matched, and what is matched is as it was read. If fewer
were started than asked, the claim's token tells which, and the line is read once more.

Tasks with a rate are started in a transaction that counts their starts.

Tasks with a lock take two commands more. Their fence is drawn *between* the reading and the start:
what is started has held its key since it was read, so whoever held the key before has a smaller
fence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from secrets import token_hex
from typing import Final, NamedTuple

from pymongo import ReturnDocument, UpdateOne

from holdfast.core.attempt import Claim, Claimed
from holdfast.core.gate import GateKind, gates_from
from holdfast.core.record import PAUSE
from holdfast.core.task import Cause, Json, Priority, State, TaskId, WorkerId
from holdfast.errors import StoreError, WorkerGone
from holdfast.stores.kill_points import reached
from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place, parted
from holdfast.stores.mongo.due import look_again, move_due
from holdfast.stores.mongo.fleet import ALIVE
from holdfast.stores.mongo.gates import LOOKS, count_starts
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.mongo.texts import safe_text

_SLICE: Final = 1_000
_SHOWN: Final = {"attempts": 0, "events": 0, "result": 0, "error": 0}


class _View(NamedTuple):
    """The board as a claim sees it."""

    now: int
    lanes: Sequence[str]
    looks: bool
    """Whether there may be gates to look at again."""


class Claims(Connected):
    """`TaskStore.claim`."""

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
            await move_due(db, view.now)
            if view.looks:
                await look_again(db, view.now)
            taken = await self._take(db, view.lanes, worker_id, limit) if limit > 0 else ()
            ranks, claims = [rank for rank, _ in taken], [claim for _, claim in taken]
            if claims and len(claims) == limit:
                # Who got all they asked for may ask again at once.
                return Claimed(claims, 0.0, ranks)
            next_due = await _next_due(db, view, view.looks or LOOKS in db.told)
            return Claimed(claims, next_due, ranks)

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
            {"$set": {"pauses": PAUSE}},
            {"$lookup": {
                "from": db.records.name, "localField": "pauses", "foreignField": "kind",
                "as": "paused",
            }},
        ]  # fmt: skip
        found = await (await db.state.aggregate(pipeline)).to_list()
        if not found:
            raise StoreError(f"{self.url} was dropped, or emptied, while it was open")
        board = found[0]
        if not any(worker["status"] in ALIVE for worker in board["worker"]):
            raise WorkerGone(worker_id)
        closed = {one["key"] for one in board["paused"]}
        lanes = []
        for lane in board["lanes"]:
            queue, requires = parted(lane)
            served = queues is None or queue in queues
            if served and queue not in closed and requires <= capabilities:
                lanes.append(lane)
        return _View(self._us(board["now"]), sorted(lanes), LOOKS in board)

    async def _take(
        self, db: Collections, lanes: Sequence[str], worker_id: WorkerId, limit: int
    ) -> Sequence[tuple[int, Claim]]:
        """Start the first in line, each with its rank; where others were faster, those after
        them.
        """
        claims: list[tuple[int, Claim]] = []
        while True:
            first = await _first_in_line(db, lanes, limit - len(claims))
            started = await self._start(db, first, worker_id)
            claims += started
            if len(started) == len(first) or len(claims) >= limit:
                return claims

    async def _start(
        self, db: Collections, documents: Sequence[Document], worker_id: WorkerId
    ) -> Sequence[tuple[int, Claim]]:
        if not documents:
            return ()
        starting = _starting(worker_id, token := token_hex(8), self._now_expression)
        fences = await _fences(db, [one["_id"] for one in documents if "lock" in one])
        # Each by itself, in one command: an update of many that meets a document of an open
        # transaction waits with the others in hand, and a server may keep the transaction from
        # ending meanwhile.
        starts = {
            one["_id"]: UpdateOne(_as_read(one), [*starting, *_fence(one, fences)])
            for one in documents
        }
        rated = {one["_id"]: one for one in documents if _rates(one)}
        started = await self._start_rated(db, starts, rated) if rated else 0
        plain = [start for task_id, start in starts.items() if task_id not in rated]
        for first in range(0, len(plain), _SLICE):
            done = await db.tasks.bulk_write(plain[first : first + _SLICE], ordered=False)
            started += done.modified_count
            reached("claimed")
        if started < len(documents):
            wanted = {"_id": {"$in": [*starts]}, "claim": token}
            mine = {one["_id"] async for one in db.tasks.find(wanted, {"_id": 1})}
            documents = [one for one in documents if one["_id"] in mine]
        return [
            (one["rank"], _claim_of(one, worker_id, fences.get(one["_id"]))) for one in documents
        ]

    async def _start_rated(
        self, db: Collections, starts: Mapping[str, UpdateOne], rated: Mapping[str, Document]
    ) -> int:
        """Start those that stand where they were read, and count that; answers how many."""

        async def start(inside: Collections) -> int:
            where = {"_id": {"$in": [*rated]}}
            line = await inside.tasks.find(where, {"ready": 1}, session=inside.session).to_list()
            ids = [id_ for one in line if one.get("ready") == rated[id_ := one["_id"]]["ready"]]
            if ids:
                writes = [starts[task_id] for task_id in ids]
                await inside.tasks.bulk_write(writes, ordered=False, session=inside.session)
                counted = Counter(name for task_id in ids for name in _rates(rated[task_id]))
                await count_starts(inside, counted, await self._now_us(inside))
            return len(ids)

        return await atomically(db, start)


def _rates(document: Document) -> Sequence[str]:
    """The rates that its start counts for."""
    if "gates" not in document:
        return ()
    return [gate.name for gate in gates_from(document["gates"]) if gate.kind is GateKind.RATE]


async def _first_in_line(db: Collections, lanes: Sequence[str], limit: int) -> Sequence[Document]:
    if not lanes:
        return ()
    line = db.tasks.find({"ready_lane": among(lanes)}, _SHOWN, sort=[("ready", 1)], limit=limit)
    return await line.batch_size(limit + 1).to_list()


def among(lanes: Sequence[str]) -> Json:
    return lanes[0] if len(lanes) == 1 else {"$in": list(lanes)}


async def _next_due(db: Collections, view: _View, looks: bool) -> float | None:
    moments = []
    if view.lanes:
        where = {"due_lane": among(view.lanes)}
        found = await db.tasks.find_one(where, {"due": 1}, sort=[("due", 1)])
        moments += [found["due"]] if found else []
    if looks:
        later = {"look_at": {"$gte": 0}}
        first = await db.gates.find_one(later, {"look_at": 1}, sort=[("look_at", 1)])
        moments += [first["look_at"]] if first else []
    return max(0, min(moments) - view.now) / 1e6 if moments else None


def _as_read(document: Document) -> Document:
    """The filter for it, if it still stands where it was read."""
    return {"_id": document["_id"], "ready": document["ready"]}


def _fence(document: Document, fences: Mapping[str, int]) -> Sequence[Document]:
    fence = fences.get(document["_id"])
    return [] if fence is None else [{"$set": {"fence": fence}}]


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
    return [{"$set": started}, {"$unset": ["ready", "ready_lane", "alarm"]}]


async def _fences(db: Collections, locked: Sequence[str]) -> Mapping[str, int]:
    """Draw a fence for each."""
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
    return dict(zip(locked, count(board["fence"] - len(locked) + 1), strict=False))


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
