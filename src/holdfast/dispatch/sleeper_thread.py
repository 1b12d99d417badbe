"""Has this process called while somebody in it sleeps, over its one connection to the store's own
server: for servers that must be told who wants to be called.
"""

from __future__ import annotations

import asyncio
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, Protocol, Self, TypeVar

from holdfast.dispatch.calls import Calls
from holdfast.dispatch.connection_thread import ConnectionThread, HintConnection
from holdfast.dispatch.in_process import InProcessListener
from holdfast.logs import EventLog

log = EventLog(__name__)

PATIENCE: Final = 5.0
"""Seconds for one answer, or for connecting. A server that takes longer is as good as away."""
BUSY: Final = 0.25
"""A process in which nobody has slept for so long is not called any more."""
UNUSED: Final = 2.0
"""Seconds after which a connection that nobody listens on and nobody calls over is let go of."""
APART: Final = 0.003
IN_VAIN: Final = 0.01


class SleeperConnection(HintConnection, Protocol):
    @property
    def can_hear(self) -> bool:
        """Whether calls can reach it at all."""
        ...


C = TypeVar("C", bound=SleeperConnection)


class SleeperThread(ConnectionThread[C]):
    """All methods without an underscore may be called from any thread.

    Args:
        listeners: Those of this process.
        let_go: Forgets this object, unless somebody listens; whether it did.
        renew: Seconds after which the server is told again.
    """

    hears: ClassVar[str]
    """Its mode, if calls reach it."""

    def __init__(
        self,
        *,
        listeners: Callable[[], Sequence[InProcessListener]],
        let_go: Callable[[Self], bool],
        renew: float = math.inf,
    ) -> None:
        super().__init__(every=BUSY, within=2 * PATIENCE, calls=Calls(apart=APART, in_vain=IN_VAIN))
        self._listeners = listeners
        self._let_go: Callable[[], bool] = lambda: let_go(self)
        self._renew = renew
        self._used_at = 0.0
        self._slept_at = 0.0
        self._registration = 0
        self._registered_for: frozenset[str] | None = None
        self._registered_at = 0.0
        self._is_registered = False

    async def mode(self) -> str:
        """How wake-ups reach this process, or `poll`."""
        self._used_at = time.monotonic()
        await self.is_up()
        return self._mode

    def call(self, queues: Mapping[str, int]) -> None:
        self._used_at = time.monotonic()
        super().call(queues)

    def must_register(self, registration: int) -> bool:
        """Whether somebody who saw that registration must register anew before sleeping."""
        is_current = self._is_registered and registration == self._registration
        return self._mode == self.hears and not is_current

    async def register(self, *, within: float) -> int | None:
        """Have this process called from now on; None if that cannot be had."""
        self.slept()
        asked = self._run(self._register())
        if asked is None:
            return None
        try:
            # Shielded: who no longer waits for it leaves nothing half done.
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(asked)), within)
        except Exception as error:  # noqa: BLE001 - then this process polls
            log.debug("dispatch.register_failed", error=str(error))
            return None

    def slept(self) -> None:
        """Somebody here sleeps, or did until now."""
        self._slept_at = time.monotonic()

    # On its own loop; what each kind of server is told

    @abstractmethod
    async def _sleep(self, connection: C, queues: frozenset[str] | None) -> None:
        """Have this process called for these queues (None: all) from now on, and no others."""

    @abstractmethod
    async def _awake(self, connection: C) -> None:
        """Have it called no longer."""

    # On its own loop; what is the same for all

    @property
    def _mode(self) -> str:
        connection = self.connection
        return self.hears if connection is not None and connection.can_hear else "poll"

    def _how(self) -> Mapping[str, str]:
        return {"mode": self._mode}

    def _story(self, error: str) -> str:
        return f"{error}; workers poll until it is back"

    def _changed(self, connection: C | None) -> None:
        self._is_registered = False
        if connection is not None:
            self._wake_all()

    def _wake_all(self) -> None:
        for listener in self._listeners():
            listener.wake()

    async def _look_after(self, connection: C) -> None:
        now = time.monotonic()
        if self._is_registered:
            is_asleep = any(listener.is_asleep for listener in self._listeners())
            if not is_asleep and now - self._slept_at > BUSY:
                self._is_registered = False
                await self._awake(connection)
            elif now - self._registered_at > self._renew:
                await self._sign_up(connection)
        elif self._calls.are_made and now - self._used_at > UNUSED and self._let_go():
            self._end()

    async def _register(self) -> int | None:
        connection = self.connection
        if connection is None:
            return None
        if not self._is_registered or not self._is_covered(self._wanted()):
            await self._sign_up(connection)
            self._registration += 1
        self.slept()
        return self._registration

    async def _sign_up(self, connection: C) -> None:
        wanted = self._wanted()
        await self._sleep(connection, wanted)
        self._registered_for, self._registered_at = wanted, time.monotonic()
        self._is_registered = True

    def _is_covered(self, wanted: frozenset[str] | None) -> bool:
        """Whether this process is called for all of these; for others too does no harm."""
        known = self._registered_for
        return known is None or (wanted is not None and wanted <= known)

    def _wanted(self) -> frozenset[str] | None:
        """The queues that anybody here listens to; None: all."""
        wanted: set[str] = set()
        for listener in self._listeners():
            if listener.queues is None:
                return None
            wanted.update(listener.queues)
        return frozenset(wanted)

    async def _leave(self) -> None:
        await super()._leave()
        if self._is_registered and self.connection is not None:
            await self._awake(self.connection)

    def _heard(self, queue: str) -> None:
        for listener in self._listeners():
            if listener.serves((queue,)):
                listener.wake()
