"""Registers this process as asleep, calls others, hears calls: over one connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from holdfast.dispatch.calls import Calls
from holdfast.dispatch.connection_thread import ConnectionThread
from holdfast.dispatch.in_process import InProcessListener
from holdfast.dispatch.postgres.connection import PATIENCE, PostgresConnection
from holdfast.logs import EventLog

log = EventLog(__name__)

APART: Final = 0.003
IN_VAIN: Final = 0.01
STANDING: Final = 30.0
"""Seconds that a registration lasts. It is prolonged well before; a dead process's runs out."""
RENEW: Final = 10.0
BUSY: Final = 0.25
"""A process in which nobody has slept for so long is not called any more."""
UNUSED: Final = 2.0
"""Seconds after which a connection that nobody listens on and nobody calls over is let go of."""


class PostgresWakeups(ConnectionThread[PostgresConnection]):
    """All methods without an underscore may be called from any thread.

    Args:
        process: This process's name among all.
        listeners: Those of this process.
        let_go: Forgets this object, unless somebody listens; whether it did.
    """

    def __init__(
        self,
        dsn: str,
        schema: str,
        process: str,
        *,
        listeners: Callable[[], Sequence[InProcessListener]],
        let_go: Callable[[PostgresWakeups], bool],
    ) -> None:
        super().__init__(every=BUSY, within=2 * PATIENCE, calls=Calls(apart=APART, in_vain=IN_VAIN))
        self._dsn = dsn
        self._schema = schema
        self._process = process
        self._listeners = listeners
        self._let_go = let_go
        self._used_at = 0.0
        self._slept_at = 0.0
        self._registration = 0
        self._registered_for: frozenset[str] | None = None
        self._registered_at = 0.0
        self._is_registered = False

    async def mode(self) -> str:
        """`listen` or `poll`."""
        self._used_at = time.monotonic()
        await self.is_up()
        return self._mode

    def call(self, queues: Mapping[str, int]) -> None:
        self._used_at = time.monotonic()
        super().call(queues)

    def must_register(self, registration: int) -> bool:
        """Whether somebody who saw that registration must register anew before sleeping."""
        is_current = self._is_registered and registration == self._registration
        return self._mode == "listen" and not is_current

    async def register(self, *, within: float) -> int | None:
        """Have this process called from now on; None if that cannot be had."""
        self.slept()
        asked = self._run(self._register())
        if asked is None:
            return None
        try:
            return await asyncio.wait_for(asyncio.wrap_future(asked), within)
        except Exception as error:  # noqa: BLE001 - then this process polls
            log.debug("dispatch.register_failed", error=str(error))
            return None

    def slept(self) -> None:
        """Somebody here sleeps, or did until now."""
        self._slept_at = time.monotonic()

    # On its own loop

    @property
    def _mode(self) -> str:
        connection = self.connection
        return "listen" if connection is not None and connection.can_hear else "poll"

    async def _connect(self, attempt: int) -> PostgresConnection:
        return await PostgresConnection.open(self._dsn, self._schema, self._heard)

    def _how(self) -> Mapping[str, str]:
        return {"mode": self._mode}

    def _story(self, error: str) -> str:
        return f"{error}; workers poll until it is back"

    def _changed(self, connection: PostgresConnection | None) -> None:
        self._is_registered = False
        self._calls.use(None if connection is None else self._call)
        if connection is not None:
            for listener in self._listeners():
                listener.wake()

    async def _look_after(self, connection: PostgresConnection) -> None:
        now = time.monotonic()
        if self._is_registered:
            is_asleep = any(listener.is_asleep for listener in self._listeners())
            if not is_asleep and now - self._slept_at > BUSY:
                self._is_registered = False
                await connection.ask("awake", self._process)
            elif now - self._registered_at > RENEW:
                await self._sign_up(connection)
        elif self._calls.are_made and now - self._used_at > UNUSED and self._let_go(self):
            self._end()

    async def _register(self) -> int | None:
        connection = self.connection
        if connection is None:
            return None
        if not self._is_registered or self._registered_for != self._wanted():
            await self._sign_up(connection)
            self._registration += 1
        self.slept()
        return self._registration

    async def _sign_up(self, connection: PostgresConnection) -> None:
        wanted = self._wanted()
        queues = None if wanted is None else sorted(wanted)
        await connection.ask("sleep", self._process, queues, STANDING)
        self._registered_for, self._registered_at = wanted, time.monotonic()
        self._is_registered = True

    def _wanted(self) -> frozenset[str] | None:
        """The queues that anybody here listens to; None: all."""
        wanted: set[str] = set()
        for listener in self._listeners():
            if listener.queues is None:
                return None
            wanted.update(listener.queues)
        return frozenset(wanted)

    async def _call(self, queues: Mapping[str, int]) -> bool:
        try:
            assert self.connection is not None
            return bool(await self.connection.ask("wake", sorted(queues)))
        except Exception as error:  # noqa: BLE001 - a wake-up is a hint
            log.debug("dispatch.call_failed", error=str(error))
            return False

    async def _leave(self) -> None:
        await super()._leave()
        if self._is_registered and self.connection is not None:
            await self.connection.ask("awake", self._process)

    def _heard(self, queue: str) -> None:
        for listener in self._listeners():
            if listener.serves((queue,)):
                listener.wake()
