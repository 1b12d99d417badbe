"""Keeps the database's shape: a few collections, their indexes, and one document that says which
version they are of.

Most indexes are over *marks*, fields that a task has only while they apply (`documents.py`), and
sparse: each holds those it is about and nobody else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pymongo import ASCENDING, IndexModel

from holdfast.core.task import Json
from holdfast.errors import SchemaMismatch, StoreError
from holdfast.stores.mongo.connections import Collection, Collections
from holdfast.stores.mongo.upgrading import from_1, from_2

VERSION: Final = 3
BOARD: Final = "board"
EMPTY_BOARD: Final[Mapping[str, Json]] = {
    "_id": BOARD, "schema": VERSION, "lanes": [], "fence": 0, "refused": 0,
}  # fmt: skip
"""The one document of the whole store: which lanes there are, and counters."""
NEVER: Final = 2_147_483_647
"""Seconds: what a TTL index waits for until the first prune says how long tasks are kept."""
_OLDEST: Final = 17
"""The wire version of MongoDB 6.0."""


class Index(NamedTuple):
    """Named by its fields. `ttl`: documents go by themselves, so many seconds after that date."""

    fields: tuple[str, ...]
    unique: bool = False
    sparse: bool = True
    ttl: int | None = None

    @property
    def name(self) -> str:
        return "_".join(field.strip("_") for field in self.fields)

    def options(self, *, ttl: bool) -> dict[str, Json]:
        given: dict[str, Json] = {"name": self.name}
        if self.unique:
            given["unique"] = True
        if self.sparse:
            given["sparse"] = True
        if self.ttl is not None and ttl:
            given["expireAfterSeconds"] = self.ttl
        return given

    def is_like(self, found: Mapping[str, Json]) -> bool:
        """Whether the server's word for an index says what this one says."""
        keys = [tuple(pair) for pair in found.get("key", ())]
        unique = bool(found.get("unique"))
        return keys == [(field, ASCENDING) for field in self.fields] and unique == self.unique

    def model(self, *, ttl: bool) -> IndexModel:
        return IndexModel([(f, ASCENDING) for f in self.fields], **self.options(ttl=ttl))


INDEXES: Final[dict[str, tuple[Index, ...]]] = {
    "tasks": (
        Index(("ready_lane", "ready")),
        Index(("due_lane", "due")),
        Index(("alarm",)),
        Index(("unique",), unique=True),
        Index(("idempotent",), unique=True),
        Index(("idempotent_until",)),
        Index(("holds",), unique=True),
        Index(("waits_for", "order")),
        Index(("running_on",)),
        Index(("stop_on",)),
        Index(("ended_on",), ttl=NEVER),
        Index(("died_on",), ttl=NEVER),
        Index(("lock",)),
        Index(("parent_id",)),
        Index(("state", "_id"), sparse=False),
        Index(("place", "state", "queue", "priority", "run_at"), sparse=False),
    ),
    "history": (Index(("task",)),),
    "gates": (Index(("look_at",)), Index(("opened_at",))),
    "records": (
        Index(("kind", "group", "sort", "key"), sparse=False),
        Index(("kind", "key"), sparse=False),
        Index(("due_kind", "due_at")),
    ),
    "journal": (Index(("task", "number"), sparse=False),),
}


async def found_version(db: Collections) -> int:
    """The version of what is there; 0 if there is nothing."""
    board = await db.state.find_one({"_id": BOARD}, {"schema": 1})
    return 0 if board is None else int(board["schema"])


async def open_schema(db: Collections, where: str, *, ttl: bool) -> None:
    """An empty database is set up, one of another version is refused."""
    await _check_server(db, where)
    found = await found_version(db)
    if found == 0:
        if await db.tasks.find_one({}, {"_id": 1}) is not None:
            raise StoreError(
                f"{where}: {db.tasks.name} holds documents, but {db.state.name} does not say which"
                " Holdfast made them. Give Holdfast a name of its own (?schema=… in the URL)."
            )
        await migrate(db, where, ttl=ttl)
        found = await found_version(db)
    if found != VERSION:
        raise SchemaMismatch(found=found, expected=VERSION, where=where)


async def migrate(db: Collections, where: str, *, ttl: bool) -> Sequence[int]:
    """Make what is missing; returns the versions applied. Of many processes that try, each makes
    the same indexes, and one writes down that it is done.
    """
    found = await found_version(db)
    if found > VERSION:
        raise SchemaMismatch(found=found, expected=VERSION, where=where)
    await _check_server(db, where)
    if found == 1:
        await from_1(db)
    if found in (1, 2):
        await from_2(db)
    for collection, missing in await missing_indexes(db):
        await collection.create_indexes([index.model(ttl=ttl) for index in missing])
    new = {"$setOnInsert": {name: value for name, value in EMPTY_BOARD.items() if name != "_id"}}
    written = await db.state.update_one({"_id": BOARD}, new, upsert=True)
    older = {"_id": BOARD, "schema": {"$lt": VERSION}}
    raised = await db.state.update_one(older, {"$set": {"schema": VERSION}})
    return [VERSION] if written.upserted_id is not None or raised.modified_count else []


async def missing_indexes(db: Collections) -> Sequence[tuple[Collection, Sequence[Index]]]:
    """Indexes that are not there, or that are not what they should be, by collection."""
    missing = []
    for noun, indexes in INDEXES.items():
        collection: Collection = getattr(db, noun)
        there = await collection.index_information()
        absent = [index for index in indexes if not index.is_like(there.get(index.name, {}))]
        if absent:
            missing.append((collection, absent))
    return missing


def script(prefix: str) -> str:
    """All of it, for a person to read or to run in `mongosh`."""
    return "\n".join(_lines(prefix)) + "\n"


def _lines(prefix: str) -> Iterator[str]:
    for noun, indexes in INDEXES.items():
        for index in indexes:
            keys = json.dumps(dict.fromkeys(index.fields, 1))
            options = json.dumps(index.options(ttl=True))
            yield f'db.getCollection("{prefix}.{noun}").createIndex({keys}, {options});'
    yield f'db.getCollection("{prefix}.state").insertOne({json.dumps(EMPTY_BOARD)});'


async def _check_server(db: Collections, where: str) -> None:
    hello = await db.client.admin.command("hello")
    if hello["maxWireVersion"] < _OLDEST:
        raise StoreError(f"{where} is older than MongoDB 6.0, which Holdfast needs.")
    if "setName" not in hello and hello.get("msg") != "isdbgrid":
        raise StoreError(
            f"{where} is a single server. It has no transactions, on which Holdfast's promises "
            "rest, so it was not opened. Make it a replica set, for which one member is enough: "
            "start it with `mongod --replSet rs0`, and once, in mongosh, call `rs.initiate()`. "
            "docs/how-to/use-mongodb.md has a Compose file that does both."
        )
