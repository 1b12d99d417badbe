"""Brings a database of an older schema to this one.

In schema 1 locks had no documents of their own and were passed on after the write that freed them,
and a single server kept the tasks of a batch *staged* until a document said that it counts. What a
death in between left behind is finished here, once. In schema 2 locks were the only gates, and
tasks kept what they owe to their callbacks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from typing import Final

from pymongo import UpdateOne

from holdfast.core.callback import OWED
from holdfast.core.gate import GateKind, gate_name
from holdfast.core.record import PAUSE
from holdfast.stores.columns import as_time
from holdfast.stores.mongo.connections import Collection, Collections
from holdfast.stores.mongo.documents import Document

_SLICE: Final = 1_000


async def from_1(db: Collections) -> None:
    """May be done by several at once, and again after a death."""
    batches = db.tasks.database[db.tasks.name.replace(".tasks", ".batches")]
    counted = [one["_id"] async for one in batches.find({"counts": True}, {"_id": 1})]
    await db.tasks.delete_many({"place": "staged", "batch": {"$nin": counted}})
    await _show_staged(db)
    there = await db.tasks.index_information()
    for index in {"milestone", "batch"} & there.keys():
        await db.tasks.drop_index(index)
    await batches.drop()
    await _make_records(db)


async def from_2(db: Collections) -> None:
    """Locks become gates. May be done by several at once, and again after a death: what a blocked
    task waits for is its lock until it was rewritten, and not after. The next claim looks at all of
    them.
    """
    await db.state.update_one({"_id": "board"}, {"$set": {"looks": True}})
    ended = await db.tasks.find({"holds": {"$gte": ""}, "place": "done"}, {"_id": 1}).to_list()
    await _write(db.tasks, [UpdateOne(one, {"$set": {"keeps": True}}) for one in ended])
    change = {"$inc": {"turn": 1}, "$set": {"look_at": 0}}
    for mark in ("holds", "waits_for"):
        keys = [one["_id"] async for one in await db.tasks.aggregate(_locks(mark))]
        names = [gate_name(GateKind.LOCK, key) for key in keys]
        await _write(db.gates, [UpdateOne({"_id": n}, change, upsert=True) for n in names])
    blocked = db.tasks.find({"waits_for": {"$gte": ""}, "gates": None}, {"lock": 1})
    await _write(db.tasks, [_before_gate(one) async for one in blocked])
    await db.tasks.database[db.tasks.name.replace(".tasks", ".locks")].drop()
    await _hand_over_callbacks(db)


async def _hand_over_callbacks(db: Collections) -> None:
    """To records, of which the next server makes tasks (`core/callback.py`)."""
    owed = {
        "callback": {"$gt": ""},
        "$or": [{"place": {"$ne": "done"}}, {"callback_due": {"$gt": 0}}],
    }
    async for one in db.tasks.find(owed, {"callback": 1, "owner": 1, "trace": 1}):
        about = {"url": one["callback"], "owner": one.get("owner"), "trace": one.get("trace")}
        await _make_record(db, OWED, one["_id"], json.dumps(about), "")
    if "callback_due" in await db.tasks.index_information():
        await db.tasks.drop_index("callback_due")


def _before_gate(one: Document) -> UpdateOne:
    name = gate_name(GateKind.LOCK, one["lock"])
    return UpdateOne({"_id": one["_id"], "waits_for": one["lock"]}, {"$set": {"waits_for": name}})


async def _write(collection: Collection, writes: Sequence[UpdateOne]) -> None:
    rest = iter(writes)
    while some := [*islice(rest, _SLICE)]:
        await collection.bulk_write(some, ordered=False)


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


def _locks(mark: str) -> list[Document]:
    """The lock keys of those who have a mark."""
    return [{"$match": {mark: {"$gte": ""}}}, {"$group": {"_id": "$lock"}}]
