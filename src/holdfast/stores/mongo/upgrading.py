"""Brings a database of schema 1 to schema 2.

There, locks had no documents of their own and were passed on after the write that freed them, and a
single server kept the tasks of a batch *staged* until a document said that it counts. What a death
in between left behind is finished here, once.
"""

from __future__ import annotations

import json
from functools import partial

from holdfast.core.record import PAUSE
from holdfast.stores.columns import as_time
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
    await _make_records(db)


async def _make_records(db: Collections) -> None:
    """Of what had a place of its own: pauses on the board, and tokens."""
    board = await db.state.find_one({"paused": {"$exists": True}})
    if board is not None:
        for queue in board["paused"]:
            await _make_record(db, PAUSE, queue, "{}", "")
        await db.state.update_one({"_id": board["_id"]}, {"$unset": {"paused": ""}})
    tokens = db.tasks.database[db.tasks.name.replace(".tasks", ".tokens")]
    async for one in tokens.find({}):
        created = _text(one["created_at"])
        kept = json.loads(one.get("document") or "{}") | {
            "name": one["name"],
            "scopes": one["scopes"],
            "digest": bytes(one["digest"]).hex(),
            "created_at": created,
            "expires_at": _text(one.get("expires_at")),
            "revoked_at": _text(one.get("revoked_at")),
        }
        document = json.dumps({word: value for word, value in kept.items() if value is not None})
        await _make_record(db, "token", one["_id"], document, created or "")
    await tokens.drop()


async def _make_record(db: Collections, kind: str, key: str, document: str, sort: str) -> None:
    new = {
        "kind": kind, "key": key, "version": 1, "document": document, "group": "", "sort": sort,
        "by": "",
    }  # fmt: skip
    where = {"_id": f"{kind}/{key}"}
    await db.records.update_one(where, {"$setOnInsert": new}, upsert=True)


def _text(us: int | None) -> str | None:
    return None if us is None else as_time(us).isoformat(timespec="microseconds")


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
