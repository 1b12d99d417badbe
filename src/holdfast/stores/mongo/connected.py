"""What the parts of the store share: its collections, one clock, and errors in our words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from holdfast.core.task import Json
from holdfast.errors import StoreError
from holdfast.ports.clock import Clock
from holdfast.stores.columns import as_time, in_us
from holdfast.stores.mongo.address import parse
from holdfast.stores.mongo.connections import Collections, Connections
from holdfast.stores.mongo.faults import explained

SERVER_NOW: Final[Json] = {"$toLong": {"$multiply": [{"$toLong": "$$NOW"}, 1000]}}
"""Now by the server, as our times are: whole microseconds, though in steps of a thousand."""


class Connected:
    """Made once for all parts, as the last of their bases."""

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        super().__init__()
        self._address = parse(url, schema)
        self._clock = clock
        self._connections: Connections | None = None

    @property
    def url(self) -> str:
        return self._address.shown

    async def now(self) -> datetime:
        async with self._server() as db:
            return as_time(await self._now_us(db))

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Collections]:
        """The collections, for a block in which driver errors become ours. May be nested."""
        if self._connections is None:
            raise StoreError(
                f"the store {self.url} is not open in this process. Open it with `async with`; "
                "after a fork, open it anew."
            )
        with explained(self.url):
            async with self._connections.collections() as found:
                yield found

    async def _now_us(self, db: Collections) -> int:
        """Now, by a command of its own; where something is read anyway, read `$$NOW` with it."""
        if self._clock is not None:
            return self._clock.now_us()
        answers = await db.tasks.database.aggregate([{"$documents": [{}]}, {"$set": _NOW}])
        return in_us((await answers.to_list())[0]["now"])

    def _us(self, answered: datetime) -> int:
        """What a command answered for `$$NOW`, in microseconds; a test's clock knows better."""
        return in_us(answered) if self._clock is None else self._clock.now_us()

    @property
    def _now_expression(self) -> Json:
        """Now in microseconds, for the pipeline of an update."""
        return SERVER_NOW if self._clock is None else {"$literal": self._clock.now_us()}


_NOW: Final = {"now": "$$NOW"}
