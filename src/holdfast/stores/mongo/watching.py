"""Change streams that tell in which queues there may be work: for whoever wakes workers.

A task that goes in, becomes ready or is put off is a write to its document, and a queue that is
resumed is a record that goes; so the commits themselves call, those in callers' transactions too,
and nobody writes anything for it. The server sends no more than the queue's name, and nothing of
queues that nobody asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pymongo.asynchronous.command_cursor import AsyncCommandCursor
from pymongo.errors import OperationFailure

from holdfast.asyncio_tools.cancel import end
from holdfast.core.record import PAUSE
from holdfast.core.task import Json
from holdfast.errors import StoreRefused, StoreUnavailable
from holdfast.stores.mongo.address import Address, parse
from holdfast.stores.mongo.connections import client_of, close_clients
from holdfast.stores.mongo.documents import LANE_SEPARATOR, Document
from holdfast.stores.mongo.faults import explained, is_away, what

_AWAIT_MS: Final = 5_000
"""For how long the server keeps a question that it has no answer to."""
_POOL: Final = 2


class Watching:
    """A client for change streams alone, of one event loop."""

    def __init__(self, url: str) -> None:
        self._address = parse(url)
        self._client = client_of(self._address, pool=_POOL)

    async def watch(self, queues: frozenset[str] | None) -> Stream:
        """Open a stream of all that is committed from now on. StoreRefused: the server has none, or
        none for this account.
        """
        database = self._client[self._address.database]
        with explained(self._address.shown):
            try:
                # Not `watch`: the driver would go on by itself where a stream broke off, and never
                # say that a server which lost its history has left out what came meanwhile.
                found = await database.aggregate(
                    [{"$changeStream": {}}, *calls(self._address, queues)],
                    maxAwaitTimeMS=_AWAIT_MS,
                )
            except OperationFailure as error:
                if is_away(error):
                    raise
                raise StoreRefused(f"{self._address.shown}: {what(error)}") from error
        return Stream(found)

    async def close(self) -> None:
        """Not for long, though the server be silent."""
        await close_clients(self._client)


class Stream:
    """One open change stream. One reader at a time."""

    def __init__(self, stream: AsyncCommandCursor[Document]) -> None:
        self._stream = stream
        self._next: asyncio.Task[Any] | None = None

    async def heard(self) -> set[str]:
        """The queues of all that has come since; waits for a while if nothing has."""
        queues: set[str] = set()
        while True:
            following = self._next = self._next or asyncio.create_task(self._stream.try_next())
            if queues:
                await asyncio.sleep(0)  # what came with the last answer is there by then
                if not following.done():
                    return queues
            event = await following
            self._next = None
            if event is None:
                if not self._stream.alive:
                    raise StoreUnavailable("the change stream was ended: the database was dropped")
                return queues
            queues.add(event["queue"])

    async def close(self) -> None:
        if self._next is not None:
            await end({self._next})
        await self._stream.close()


def calls(address: Address, queues: frozenset[str] | None) -> Sequence[Mapping[str, Json]]:
    """What is told of which changes: `queue`."""
    tasks, records = address.collection("tasks"), address.collection("records")
    set_to, resumed = "updateDescription.updatedFields", f"{PAUSE}/"
    chosen = {"$or": [
        {"ns.coll": tasks, "operationType": "insert"},
        {"ns.coll": tasks, f"{set_to}.ready_lane": {"$exists": True}},
        {"ns.coll": tasks, f"{set_to}.due_lane": {"$exists": True}},
        {"ns.coll": records, "operationType": "delete",
         "documentKey._id": {"$regex": f"^{resumed}"}},
    ]}  # fmt: skip
    lane = {"$ifNull": [
        f"${set_to}.ready_lane", f"${set_to}.due_lane", "$fullDocument.lane",
        {"$substrBytes": ["$documentKey._id", len(resumed), -1]},
    ]}  # fmt: skip
    told = {"queue": {"$first": {"$split": [lane, LANE_SEPARATOR]}}}
    stages: Sequence[Mapping[str, Json]] = [{"$match": chosen}, {"$project": told}]
    return stages if queues is None else [*stages, {"$match": {"queue": {"$in": sorted(queues)}}}]
