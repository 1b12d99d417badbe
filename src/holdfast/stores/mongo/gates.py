"""The documents of gates: as they are read, written, and shown.

A gate's `_id` is its name. Of locks there is nothing but that somebody holds or wants one: who
holds it the mark `holds` of a task says. Every change counts `turn` up: of two transactions that
come to one gate, or leave it, the server lets only one commit, whatever else they write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from pymongo import DeleteOne, UpdateOne

from holdfast.core.gate import PARKED_CAP, GateKind, GateState, key_of, kind_of
from holdfast.core.passing import GateRow, state_of
from holdfast.core.task import TaskId
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.mongo.texts import can_be_text

_OPTIONAL: Final = ("pinned", "starts", "opened_at", "look_at", "is_kept")
LOOKS: Final = "looks"
"""On the board, from the first time that a gate is to be looked at again by itself."""


class KeepsGates(Connected):
    """`TaskStore.gates`."""

    async def gates(
        self, *, names: Collection[str] | None = None, after: str = "", limit: int
    ) -> Sequence[GateState]:
        if limit <= 0:
            return []
        where: Document = {"$gt": after}
        if names is not None:
            where = {"$in": sorted({n for n in names if n > after and can_be_text(n)})}
        async with self._server() as db:
            found = await db.gates.find({"_id": where}).sort("_id", 1).limit(limit).to_list()
            return await gate_states(db, found)


async def gate_states(db: Collections, found: Sequence[Document]) -> Sequence[GateState]:
    """Gates for people."""
    keys = [key_of(one["_id"]) for one in found if kind_of(one["_id"]) is GateKind.LOCK]
    held = await db.tasks.find({"holds": {"$in": keys}}, {"holds": 1}).to_list() if keys else []
    holders = {one["holds"]: TaskId(one["_id"]) for one in held}
    states = []
    for one in found:
        row = row_of(one)
        is_lock = row.kind is GateKind.LOCK
        holder = holders.get(key_of(row.name)) if is_lock else None
        line = {"waits_for": row.name}
        parked = await db.tasks.count_documents(line, limit=PARKED_CAP)
        if is_lock:
            row.held = int(holder is not None)
        states.append(state_of(row, parked, holder))
    return states


async def read_rows(db: Collections, names: Iterable[str]) -> dict[str, GateRow]:
    found = db.gates.find({"_id": {"$in": sorted(names)}}, session=db.session)
    return {one["_id"]: row_of(one) for one in await found.to_list()}


async def write_rows(db: Collections, rows: Sequence[GateRow], idle: Iterable[str]) -> None:
    """Write these gates and forget those, in the transaction of `db`."""
    if LOOKS not in db.told and any(row.look_at is not None for row in rows):
        await db.state.update_one({"_id": BOARD}, {"$set": {LOOKS: True}})
        db.told.add(LOOKS)
    writes = [_write(row) for row in rows] + [DeleteOne({"_id": name}) for name in idle]
    if writes:
        await db.gates.bulk_write(writes, ordered=False, session=db.session)


async def count_starts(db: Collections, starts: Counter[str], now: int) -> None:
    """So many who have passed these rates begin to run."""
    rows = await read_rows(db, starts)
    for name, row in rows.items():
        row.start(starts[name], now)
    await write_rows(db, [*rows.values()], ())


def row_of(found: Mapping[str, object]) -> GateRow:
    named = {name: value for name, value in found.items() if name not in ("_id", "turn")}
    row = GateRow(str(found["_id"]), **named)  # type: ignore[arg-type]
    row.starts = [(number, last) for number, last in row.starts]
    return row


def _write(row: GateRow) -> UpdateOne:
    change: Document = {"$inc": {"turn": 1}}
    if row.kind is not GateKind.LOCK:
        kept: Document = {
            "capacity": row.capacity, "period": row.period, "held": row.held, "left": row.left,
            "failed": row.failed, "pinned": row.pinned, "opened_at": row.opened_at,
            "look_at": row.look_at, "starts": [[*each] for each in row.starts] or None,
            "is_kept": None if row.is_kept else False,
        }  # fmt: skip
        change["$set"] = {name: value for name, value in kept.items() if value is not None}
        change["$unset"] = {name: "" for name in _OPTIONAL if kept[name] is None}
    else:
        change["$unset"] = {"look_at": ""}
    return UpdateOne({"_id": row.name}, change, upsert=True)
