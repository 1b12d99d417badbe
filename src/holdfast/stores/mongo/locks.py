"""Passes lock keys on, so that of each key's tasks the first in line is ready.

Of a key's tasks at most one has the mark `holds`: a unique index sees to it. That the key is never
free while somebody waits for it takes two documents, and so a transaction: whatever frees or
contests a key passes it on before it commits. Two that do so at once could each miss what the other
writes. So both write the key's document in `locks`, which is there for as long as somebody holds
the key or waits for it, and the server lets only one of them commit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from pymongo import DeleteOne, UpdateOne

from holdfast.core.task import State
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place, ready_of

_ORDER_BYTES: Final = 24


async def pass_on(db: Collections, keys: Collection[str]) -> None:
    """Make the first task of each key ready, unless one of its tasks runs. Inside the transaction
    that freed the keys, or made somebody wait for them.
    """
    if not keys:
        return
    first = await _first_waiters(db, keys)
    holders = await _holders(db, [*first])
    moves: list[UpdateOne] = []
    for key, waiter in first.items():
        holder = holders.get(key)
        if holder is None:
            moves.append(_promotion(waiter))
        elif holder["place"] == Place.READY and waiter["order"] < holder["ready"][:_ORDER_BYTES]:
            moves += (_demotion(holder), _promotion(waiter))
    if moves:
        await db.tasks.bulk_write(moves, session=db.session)
    turns = [_turn(key) if key in first else DeleteOne({"_id": key}) for key in sorted(keys)]
    await db.locks.bulk_write(turns, ordered=False, session=db.session)


def _turn(key: str) -> UpdateOne:
    return UpdateOne({"_id": key}, {"$inc": {"turn": 1}}, upsert=True)


async def _first_waiters(db: Collections, keys: Collection[str]) -> dict[str, Document]:
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
    found = await (await db.tasks.aggregate(pipeline, session=db.session)).to_list()
    return {
        one["_id"]: {"_id": one["task"], "waits_for": one["_id"]} | {n: one[n] for n in names}
        for one in found
    }


async def _holders(db: Collections, keys: Sequence[str]) -> dict[str, Document]:
    if not keys:
        return {}
    shown = {"holds": 1, "place": 1, "ready": 1, "version": 1}
    found = await db.tasks.find({"holds": {"$in": keys}}, shown, session=db.session).to_list()
    return {holder["holds"]: holder for holder in found}


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
