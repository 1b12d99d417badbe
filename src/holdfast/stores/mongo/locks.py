"""Passes lock keys on, so that of each key's tasks the first in line is ready.

Of a key's tasks at most one has the mark `holds`: a unique index sees to it. That the key is never
free while somebody waits for it takes two documents, and so a transaction: whatever frees or
contests a key passes it on before it commits. Two that do so at once could each miss what the other
writes. So both write the key's document in `locks`, which is there for as long as somebody holds
the key or waits for it, and the server lets only one of them commit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pymongo import DeleteOne, UpdateOne

from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place
from holdfast.stores.mongo.drafts import LEAN, Draft, write


async def write_and_pass_on(db: Collections, drafts: Sequence[Draft]) -> None:
    """Write drafts, and pass on the locks that this frees or contests, in the transaction of
    `db`.
    """
    await write(db, drafts)
    await pass_on(db, {draft.contested for draft in drafts if draft.contested is not None})


async def pass_on(db: Collections, keys: Collection[str]) -> None:
    """Make the first task of each key ready, unless one of its tasks runs. Inside the transaction
    that freed the keys, or made somebody wait for them.
    """
    if not keys:
        return
    first = await _first_waiters(db, keys)
    holders = await _holders(db, [*first])
    moved: list[Draft] = []
    for key, waiter in first.items():
        holder = holders.get(key)
        if holder is None or (holder.place is Place.READY and _order(waiter) < _order(holder)):
            moved += [holder.put(Place.BLOCKED)] if holder else []
            moved.append(waiter.put(Place.READY))
    await write(db, moved)
    turns = [_turn(key) if key in first else DeleteOne({"_id": key}) for key in sorted(keys)]
    await db.locks.bulk_write(turns, ordered=False, session=db.session)


def _order(draft: Draft) -> tuple[int, str]:
    return draft.task.rank, draft.task.id


def _turn(key: str) -> UpdateOne:
    return UpdateOne({"_id": key}, {"$inc": {"turn": 1}}, upsert=True)


async def _first_waiters(db: Collections, keys: Collection[str]) -> Mapping[str, Draft]:
    """The first in line of each key that has a line."""
    wanted = sorted(keys)
    pipeline: Sequence[Document] = [
        {"$match": {"waits_for": wanted[0] if len(wanted) == 1 else {"$in": wanted}}},
        {"$sort": {"waits_for": 1, "order": 1}},
        {"$group": {"_id": "$waits_for", "task": {"$first": "$$ROOT"}}},
        {"$project": {f"task.{name}": 0 for name in LEAN}},
    ]
    found = await (await db.tasks.aggregate(pipeline, session=db.session)).to_list()
    return {one["_id"]: Draft(one["task"]) for one in found}


async def _holders(db: Collections, keys: Sequence[str]) -> Mapping[str, Draft]:
    if not keys:
        return {}
    found = db.tasks.find({"holds": {"$in": keys}}, LEAN, session=db.session)
    return {one["holds"]: Draft(one) for one in await found.to_list()}
