"""The store in numbers, and where one task stands in it.

Nothing is tallied: counts are made by walking indexes, so they are never wrong and cost more the
more tasks there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from holdfast.core.gate import GateState
from holdfast.core.ids import is_task_id
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.stats import Depth, QueueStats, Standing, Stats
from holdfast.core.task import Json, Priority, State, TaskId
from holdfast.stores.columns import as_time
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import (
    WITHOUT_HISTORY,
    Document,
    Place,
    first_of,
    parted,
    task_of,
)
from holdfast.stores.mongo.fleet import newest_workers
from holdfast.stores.mongo.gates import gate_states
from holdfast.stores.mongo.records import paused_queues
from holdfast.stores.mongo.schema import BOARD

AHEAD_CAP: Final = 1000
_MINUTE: Final = 60_000_000
_MILLISECOND: Final = timedelta(milliseconds=1)
_UNFINISHED: Final = (Place.WAITING, Place.READY, Place.BLOCKED, Place.RUNNING)
_GROUP: Final[Document] = {
    "_id": {"place": "$place", "state": "$state", "queue": "$queue", "priority": "$priority"},
    "number": {"$sum": 1},
    "oldest": {"$min": "$run_at"},
}


class Heap(NamedTuple):
    """How many tasks are alike in place, state, queue and priority; when the oldest was due."""

    place: Place
    state: State
    queue: str
    priority: Priority
    number: int
    oldest: int


class CountsTasks(Connected):
    """`standing` and `stats` of `ports.store.TaskStore`."""

    async def standing(self, task_id: TaskId) -> Standing | None:
        if not is_task_id(task_id):
            return None
        async with self._server() as db:
            document = await db.tasks.find_one({"_id": task_id}, WITHOUT_HISTORY)
            if document is None:
                return None
            board = await _board(db)
            task, now = task_of(document), self._us(board["now"])
            return Standing(
                now=as_time(now),
                task=task,
                queue_paused=task.queue in await paused_queues(db),
                ahead=await _ahead(db, document, board["lanes"]),
                ahead_cap=AHEAD_CAP,
                gate=await _gate(db, document),
                ahead_at_gate=await _ahead_at_gate(db, document),
                workers=await newest_workers(db),
                ended_last_minute=sum(
                    number
                    for (queue, state), number in (await _ended_lately(db, now)).items()
                    if queue == task.queue and state is not State.CANCELLED
                ),
            )

    async def count_ready(
        self, *, queue: str | None, priority: Priority, rank: int, limit: int
    ) -> int:
        async with self._server() as db:
            lanes = (await _board(db))["lanes"]
            named = [lane for lane in lanes if queue in (None, parted(lane)[0])]
            until = {"$lt": first_of(rank + 1)}
            aged = {"ready_lane": {"$in": named}, "ready": until, "priority": priority.value}
            return await db.tasks.count_documents(aged, limit=limit)

    async def demand(self) -> Mapping[frozenset[str], int]:
        async with self._server() as db:
            lanes = [lane for lane in (await _board(db))["lanes"] if parted(lane)[1]]
            counts = Counter[frozenset[str]]()
            for lane in lanes:
                for mark in ("ready_lane", "due_lane"):
                    counts[parted(lane)[1]] += await db.tasks.count_documents({mark: lane})
            return +counts

    async def stats(self) -> Stats:
        async with self._server() as db:
            board = await _board(db)
            now = self._us(board["now"])
            heaps = await _heaps(db)
            lately = Counter[State]()
            for (_, state), number in (await _ended_lately(db, now)).items():
                lately[state] += number
            states = Counter[State]()
            for heap in heaps:
                states[heap.state] += heap.number
            paused = await paused_queues(db)
            queues = {heap.queue for heap in heaps if heap.place in _UNFINISHED} | paused
            return Stats(
                queues=tuple(_queue_stats(q, heaps, q in paused, now) for q in sorted(queues)),
                states={state: states[state] for state in State},
                last_minute={state: lately[state] for state in State if state in TERMINAL},
                refused=board["refused"],
            )


async def _board(db: Collections) -> Document:
    """The board, with the server's now."""
    stages = [{"$match": {"_id": BOARD}}, {"$set": {"now": "$$NOW"}}]
    return (await (await db.state.aggregate(stages)).to_list())[0]


async def _heaps(db: Collections) -> Sequence[Heap]:
    """All tasks, by what is counted apart. The index holds all that is asked for."""
    places = [place.value for place in (*_UNFINISHED, Place.DONE)]
    stages = [{"$match": {"place": {"$in": places}}}, {"$group": _GROUP}]
    found = await (await db.tasks.aggregate(stages)).to_list()
    return [_heap(each) for each in found]


def _heap(found: Mapping[str, Json]) -> Heap:
    alike = found["_id"]
    place, state = Place(alike["place"]), State(alike["state"])
    priority = Priority(alike["priority"])
    return Heap(place, state, alike["queue"], priority, found["number"], found["oldest"])


def _queue_stats(queue: str, every: Sequence[Heap], paused: bool, now: int) -> QueueStats:
    here = [heap for heap in every if heap.queue == queue]
    places = Counter[Place]()
    for heap in here:
        places[heap.place] += heap.number
    ready = {heap.priority: heap for heap in here if heap.place is Place.READY}
    return QueueStats(
        queue=queue,
        paused=paused,
        ready=places[Place.READY],
        waiting=places[Place.WAITING],
        blocked=places[Place.BLOCKED],
        running=places[Place.RUNNING],
        depths=tuple(_depth(ready[priority], now) for priority in Priority if priority in ready),
    )


def _depth(heap: Heap, now: int) -> Depth:
    waited = (as_time(now) - as_time(heap.oldest)).total_seconds()
    return Depth(priority=heap.priority, ready=heap.number, oldest_seconds=waited)


async def _ended_lately(db: Collections, now: int) -> Mapping[tuple[str, State], int]:
    """How many tasks of each queue ended in each state within the last minute. The dates are of
    milliseconds; the exact instants stand beside them.
    """
    counted: Document = {"_id": {"queue": "$queue", "state": "$state"}, "number": {"$sum": 1}}
    stages: list[Document] = [
        {"$match": _ended_since("ended_on", now - _MINUTE)},
        {
            "$unionWith": {
                "coll": db.tasks.name,
                "pipeline": [{"$match": _ended_since("died_on", now - _MINUTE)}],
            }
        },
        {"$group": counted},
    ]
    found = await (await db.tasks.aggregate(stages)).to_list()
    return {(e["_id"]["queue"], State(e["_id"]["state"])): e["number"] for e in found}


def _ended_since(date: str, instant: int) -> Document:
    return {date: {"$gte": as_time(instant) - _MILLISECOND}, "finished_at": {"$gt": instant}}


async def _ahead(db: Collections, document: Document, lanes: Sequence[str]) -> int | None:
    """How many ready tasks of its queue stand before it; None if it does not stand in line."""
    if document["place"] != Place.READY.value:
        return None
    same = [lane for lane in lanes if parted(lane)[0] == document["queue"]]
    before = {"ready_lane": {"$in": same}, "ready": {"$lt": document["ready"]}}
    return await db.tasks.count_documents(before, limit=AHEAD_CAP)


async def _gate(db: Collections, document: Document) -> GateState | None:
    """The gate that it stands before."""
    if "waits_for" not in document:
        return None
    found = await db.gates.find({"_id": document["waits_for"]}).to_list()
    return next(iter(await gate_states(db, found)), None)


async def _ahead_at_gate(db: Collections, document: Document) -> int | None:
    if "waits_for" not in document:
        return None
    before = {"waits_for": document["waits_for"], "order": {"$lt": document["order"]}}
    return await db.tasks.count_documents(before, limit=AHEAD_CAP)
