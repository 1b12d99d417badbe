"""Sleeps between two looks at the store: until woken, until something is due, or for one `poll`.

The order is the one that every listener keeps: listen, look, and only then sleep. A wake-up that
comes between look and sleep is remembered by the listener; a nudge, by the napper.

Only naps are cut short, never a look: the store may have started tasks for it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher, Listener

log = EventLog(__name__)

SHORTEST: Final = 0.001


class Napper:
    """Sleeps for one who serves these queues (None: all). For one event loop."""

    def __init__(
        self, dispatcher: Dispatcher, queues: Collection[str] | None, *, poll: float
    ) -> None:
        self._dispatcher = dispatcher
        self._queues = queues
        self._poll = poll
        self._listener: Listener = _Deaf()
        self._nap: asyncio.Future[bool] | None = None
        self._due_at: float | None = None

    @property
    def is_asleep(self) -> bool:
        return self._nap is not None

    @property
    def is_due(self) -> bool:
        """Whether something became ready since the last look began."""
        return self._due_at is not None and self._due_at <= time.monotonic()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Be woken while this is open. Wake-ups are a hint: without them it polls."""
        async with AsyncExitStack() as stack:
            try:
                listening = self._dispatcher.listen(self._queues)
                self._listener = await stack.enter_async_context(listening)
            except Exception as error:  # noqa: BLE001 - a hint: one that fails costs latency, not work
                log.warning("dispatch.failed", error=str(error))
                self._listener = _Deaf()
            yield

    def look(self) -> None:
        """A look begins: its answer will know of everything that was saved until now."""
        self._due_at = None

    def nudge(self, due_in: float) -> None:
        """There may be work in that many seconds: look then at the latest."""
        at = time.monotonic() + due_in
        if self._due_at is None or at < self._due_at:
            self._due_at = at
            self.wake()

    def wake(self) -> None:
        """Sleep no longer."""
        if self._nap is not None:
            self._nap.cancel()

    def until_next_look(self, *at_most: float | None) -> float:
        """How many seconds to sleep: no longer than any of these, to what is due, or for a poll,
        which is jittered so that many do not look at once.
        """
        poll = self._poll * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, no secret
        due_in = None if self._due_at is None else self._due_at - time.monotonic()
        return max(SHORTEST, min(each for each in (poll, due_in, *at_most) if each is not None))

    async def nap(self, seconds: float) -> bool:
        """Sleep for so long, unless woken or nudged before; True if a wake-up came."""
        nap = self._nap = asyncio.ensure_future(self._wait(seconds))
        me = asyncio.current_task()
        assert me is not None
        try:
            return await nap
        except asyncio.CancelledError:
            if me.cancelling():
                raise
            return False  # only the nap was
        finally:
            self._nap = None
            nap.cancel()

    async def _wait(self, seconds: float) -> bool:
        try:
            return await self._listener.wait(seconds)
        except Exception as error:  # noqa: BLE001 - as above
            log.warning("dispatch.failed", error=str(error))
            await asyncio.sleep(seconds)
            return False


class _Deaf:
    """Stands in for a listener that could not be had."""

    async def wait(self, timeout: float) -> bool:
        await asyncio.sleep(timeout)
        return False
