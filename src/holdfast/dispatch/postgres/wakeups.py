"""Registers this process as asleep, calls others, hears calls: over one connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from holdfast.dispatch.in_process import InProcessListener
from holdfast.dispatch.postgres.connection import PostgresConnection
from holdfast.dispatch.sleeper_thread import SleeperThread
from holdfast.logs import EventLog

log = EventLog(__name__)

STANDING: Final = 30.0
"""Seconds that a registration lasts. It is prolonged well before; a dead process's runs out."""
RENEW: Final = 10.0


class PostgresWakeups(SleeperThread[PostgresConnection]):
    """
    Args:
        process: This process's name among all.
    """

    hears = "listen"

    def __init__(
        self,
        dsn: str,
        schema: str,
        process: str,
        *,
        listeners: Callable[[], Sequence[InProcessListener]],
        let_go: Callable[[PostgresWakeups], bool],
    ) -> None:
        super().__init__(listeners=listeners, let_go=let_go, renew=RENEW)
        self._dsn = dsn
        self._schema = schema
        self._process = process

    async def _connect(self, attempt: int) -> PostgresConnection:
        return await PostgresConnection.open(self._dsn, self._schema, self._heard)

    def _changed(self, connection: PostgresConnection | None) -> None:
        self._calls.use(None if connection is None else self._call)
        super()._changed(connection)

    async def _sleep(self, connection: PostgresConnection, queues: frozenset[str] | None) -> None:
        named = None if queues is None else sorted(queues)
        await connection.ask("sleep", self._process, named, STANDING)

    async def _awake(self, connection: PostgresConnection) -> None:
        await connection.ask("awake", self._process)

    async def _call(self, queues: Mapping[str, int]) -> bool:
        try:
            assert self.connection is not None
            return bool(await self.connection.ask("wake", sorted(queues)))
        except Exception as error:  # noqa: BLE001 - a wake-up is a hint
            log.debug("dispatch.call_failed", error=str(error))
            return False
