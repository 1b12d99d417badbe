"""Watches for work while this process sleeps, by one client of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.dispatch.in_process import InProcessListener
from holdfast.dispatch.mongo.connection import MongoConnection, Watching
from holdfast.dispatch.sleeper_thread import SleeperThread


class MongoWakeups(SleeperThread[MongoConnection]):
    """
    Args:
        watching: Makes what opens streams.
    """

    hears = "stream"

    def __init__(
        self,
        watching: Callable[[], Watching],
        *,
        listeners: Callable[[], Sequence[InProcessListener]],
        let_go: Callable[[MongoWakeups], bool],
    ) -> None:
        super().__init__(listeners=listeners, let_go=let_go)
        self._new_watching = watching
        self._watching: Watching | None = None

    async def _connect(self, attempt: int) -> MongoConnection:
        self._watching = self._watching or self._new_watching()
        connection = MongoConnection(self._watching, self._heard)
        await connection.try_out()
        return connection

    async def _look_after(self, connection: MongoConnection) -> None:
        if connection.can_hear:  # else it is kept, to be told only once
            await super()._look_after(connection)

    async def _sleep(self, connection: MongoConnection, queues: frozenset[str] | None) -> None:
        if await connection.watch(queues):
            self._wake_all()

    async def _awake(self, connection: MongoConnection) -> None:
        await connection.rest()

    async def _live(self) -> None:
        try:
            await super()._live()
        finally:
            if self._watching is not None:
                await self._watching.close()
