"""What the parts of the store share: its collections, one clock, and errors in our words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from holdfast.core.task import Json, State, Task, TaskId
from holdfast.errors import StoreError
from holdfast.ports.clock import Clock
from holdfast.stores.callees import callees, tell_nobody
from holdfast.stores.columns import as_time, in_us
from holdfast.stores.mongo.address import parse
from holdfast.stores.mongo.connections import CODEC, Collections, Connections
from holdfast.stores.mongo.faults import explained
from holdfast.stores.mongo.lent import Lent

SERVER_NOW: Final[Json] = {"$toLong": {"$multiply": [{"$toLong": "$$NOW"}, 1000]}}
"""Now by the server, as our times are: whole microseconds, though in steps of a thousand."""


class Connected:
    """Made once for all parts, as the last of their bases."""

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        super().__init__()
        self._address = parse(url, schema)
        self._clock = clock
        self._connections: Connections | None = None
        self._lent: Lent | None = None
        self.passed_on: Callable[[Mapping[str, int]], None] = tell_nobody

    @property
    def url(self) -> str:
        return self._address.shown

    async def now(self) -> datetime:
        async with self._server() as db:
            return as_time(await self._now_us(db))

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Collections]:
        """The collections, for a block in which driver errors become ours. May be nested."""
        own, _ = self._opened()
        with explained(self.url):
            async with own.collections() as found:
                yield found

    def _opened(self) -> tuple[Connections, Lent]:
        """The store's own clients, and those for handlers."""
        if self._connections is None or self._lent is None:
            raise StoreError(
                f"the store {self.url} is not open in this process. Open it with `async with`; "
                "after a fork, open it anew."
            )
        return self._connections, self._lent

    def _tell(self, moved: Mapping[TaskId, Task], *, but: Iterable[TaskId] = ()) -> None:
        """Tell of those whom gates let pass, but for these."""
        others = {*but}
        ready = [t for t in moved.values() if t.state is State.QUEUED and t.id not in others]
        if ready:
            self.passed_on(callees((task.queue, task.requires, 1) for task in ready))

    async def _now_us(self, db: Collections) -> int:
        """Now, by a command of its own; where something is read anyway, read `$$NOW` with it."""
        if self._clock is not None:
            return self._clock.now_us()
        answer = await db.tasks.database.command(now_command(), codec_options=CODEC)
        return in_us(answer["cursor"]["firstBatch"][0]["now"])

    def _us(self, answered: datetime) -> int:
        """What a command answered for `$$NOW`, in microseconds; a test's clock knows better."""
        return in_us(answered) if self._clock is None else self._clock.now_us()

    @property
    def _now_expression(self) -> Json:
        """Now in microseconds, for the pipeline of an update."""
        return SERVER_NOW if self._clock is None else {"$literal": self._clock.now_us()}


def now_command() -> dict[str, Json]:
    """Asks for the time."""
    return {"aggregate": 1, "pipeline": [{"$documents": [{}]}, {"$set": _NOW}], "cursor": {}}


_NOW: Final = {"now": "$$NOW"}
