"""Brings a database of schema 1 to schema 2.

There, locks had no documents of their own and were passed on after the write that freed them, and a
single server kept the tasks of a batch *staged* until a document said that it counts. What a death
in between left behind is finished here, once.
"""

from __future__ import annotations

from functools import partial

from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document
from holdfast.stores.mongo.locks import pass_on


async def from_1(db: Collections) -> None:
    """May be done by several at once, and again after a death."""
    batches = db.tasks.database[db.tasks.name.replace(".tasks", ".batches")]
    counted = [one["_id"] async for one in batches.find({"counts": True}, {"_id": 1})]
    await db.tasks.delete_many({"place": "staged", "batch": {"$nin": counted}})
    await _show_staged(db)
    held = [one["_id"] async for one in await db.tasks.aggregate(_keys("holds"))]
    for key in held:
        await db.locks.update_one({"_id": key}, {"$inc": {"turn": 1}}, upsert=True)
    async for one in await db.tasks.aggregate(_keys("waits_for")):
        await atomically(db, partial(pass_on, keys=[one["_id"]]))
    there = await db.tasks.index_information()
    for index in {"milestone", "batch"} & there.keys():
        await db.tasks.drop_index(index)
    await batches.drop()


async def _show_staged(db: Collections) -> None:
    """As what is due at once: the next claim moves each to its place."""
    gone = {"batch": "", "staged_at": ""}
    async for one in db.tasks.find({"place": "staged"}, {"run_at": 1, "lane": 1, "expires_at": 1}):
        due = {"place": "waiting", "due_lane": one["lane"], "due": one["run_at"]}
        alarm = min(one["run_at"], one.get("expires_at", one["run_at"]))
        change: Document = {"$set": due | {"alarm": alarm}, "$unset": gone, "$inc": {"version": 1}}
        await db.tasks.update_one({"_id": one["_id"], "place": "staged"}, change)


def _keys(mark: str) -> list[Document]:
    return [{"$match": {mark: {"$gte": ""}}}, {"$group": {"_id": f"${mark}"}}]
