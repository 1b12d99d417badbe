"""Passes lock keys on, so that of each key's tasks the first in line is ready.

The server has no step over two documents that both topologies share, so locks **converge**. The
unique index on `holds` sees to it that a key is never held twice, at any instant and whatever dies
when. What is left is to give a free key to the first who waits for it: `pass_on`, which everybody
calls after each write that frees or contests a key, and which the sweep calls for keys that have
waiters and no holder, because somebody died in between. It may be called at any time by anybody.

It needs no second look. Whoever changes a key's tasks passes it on *after* writing, so the last to
do so sees everything; only a writer that lost a race looks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from holdfast.core.task import State
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place, ready_of
from holdfast.stores.mongo.drafts import taken_keys
from holdfast.stores.mongo.points import reached

_ORDER_BYTES: Final = 24
_PAUSE: Final = 0.002
"""Until what another wrote can be read: a replica set shows it once a majority has it."""


async def pass_on(db: Collections, keys: Collection[str]) -> None:
    """Make the first task of each key ready, unless one of its tasks runs."""
    unsettled = await _pass_on_once(db, set(keys)) if keys else set()
    while unsettled:
        await asyncio.sleep(_PAUSE)
        unsettled = await _pass_on_once(db, unsettled)


async def _pass_on_once(db: Collections, keys: set[str]) -> set[str]:
    """Returns the keys at which another was faster."""
    first = await first_waiters(db, keys)
    holders = await _holders(db, [*first])
    demoted, promoted = [], []
    for key, waiter in first.items():
        holder = holders.get(key)
        if holder is None:
            promoted.append(waiter)
        elif holder["place"] == Place.READY and waiter["order"] < holder["ready"][:_ORDER_BYTES]:
            demoted.append(holder)
            promoted.append(waiter)
    lost = await _written(db, [_demotion(holder) for holder in demoted])
    if demoted:
        reached("demoted")
    lost = await _written(db, [_promotion(waiter) for waiter in promoted]) or lost
    return {waiter["waits_for"] for waiter in promoted} if lost else set()


async def first_waiters(db: Collections, keys: Collection[str]) -> dict[str, Document]:
    """The first in line of each key that has a line."""
    wanted = sorted(keys)
    names = ("version", "lane", "order")
    pipeline: Sequence[Document] = [
        {"$match": {"waits_for": wanted[0] if len(wanted) == 1 else {"$in": wanted}}},
        {"$sort": {"waits_for": 1, "order": 1}},
        {
            "$group": {
                "_id": "$waits_for",
                "task": {"$first": "$_id"},
                **{name: {"$first": f"${name}"} for name in names},
            }
        },
    ]
    found = await (await db.tasks.aggregate(pipeline)).to_list()
    return {
        one["_id"]: {"_id": one["task"], "waits_for": one["_id"]} | {n: one[n] for n in names}
        for one in found
    }


async def _holders(db: Collections, keys: Sequence[str]) -> dict[str, Document]:
    if not keys:
        return {}
    shown = {"holds": 1, "place": 1, "ready": 1, "version": 1}
    found = db.tasks.find({"holds": {"$in": keys}}, shown)
    return {holder["holds"]: holder async for holder in found}


def _demotion(holder: Document) -> UpdateOne:
    change = {
        "$set": {
            "place": Place.BLOCKED.value,
            "state": State.BLOCKED.value,
            "waits_for": holder["holds"],
            "order": holder["ready"][:_ORDER_BYTES],
        },
        "$unset": {"ready": "", "ready_lane": "", "holds": ""},
        "$inc": {"version": 1},
    }
    return UpdateOne({"_id": holder["_id"], "version": holder["version"]}, change)


def _promotion(waiter: Document) -> UpdateOne:
    version = waiter["version"] + 1
    change = {
        "$set": {
            "place": Place.READY.value,
            "state": State.QUEUED.value,
            "ready_lane": waiter["lane"],
            "ready": ready_of(waiter["order"], version),
            "holds": waiter["waits_for"],
            "version": version,
        },
        "$unset": {"waits_for": "", "order": ""},
    }
    return UpdateOne({"_id": waiter["_id"], "version": waiter["version"]}, change)


async def _written(db: Collections, writes: Sequence[UpdateOne]) -> bool:
    """Write; returns whether some other writer was faster anywhere."""
    if not writes:
        return False
    try:
        result = await db.tasks.bulk_write(writes, ordered=False)
    except BulkWriteError as error:
        taken_keys(error)
        return True
    return result.matched_count < len(writes)
