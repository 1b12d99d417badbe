"""Wakes sleepers by the commits that bring them work (`routines/03_wake.sql`).

Such a call is no message of its own, and arrives with the work. But commits that call wait for each
other, so at most one in three milliseconds does, and calls for what was stored since the last as
well. What no further commit comes for has a statement of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from holdfast.errors import HoldfastError

APART: Final = 0.003
"""Seconds between two commits that call."""


class CommitCalls:
    """The calls of one event loop.

    Args:
        send: Calls these queues by a statement of its own.
    """

    def __init__(self, send: Callable[[list[str]], Awaitable[object]]) -> None:
        self._send = send
        self._not_before = 0.0
        self._owed: set[str] = set()
        self._owed_since = 0.0
        self._paying: asyncio.Task[None] | None = None

    def take(self, queues: set[str]) -> set[str]:
        """The queues that a commit with work for these should call; none if it should not."""
        now = time.monotonic()
        if now < self._not_before:
            return set()
        self._not_before = now + APART
        called, self._owed = queues | self._owed, set()
        return called

    def owe(self, queues: set[str]) -> None:
        """There is work for these that no commit has called for."""
        if queues and not self._owed:
            self._owed_since = time.monotonic()
        self._owed |= queues
        if self._owed and self._paying is None:
            self._paying = asyncio.get_running_loop().create_task(self._pay())

    async def finish(self) -> None:
        """Wait until nothing is owed."""
        if self._paying is not None:
            await asyncio.wait([self._paying])

    async def _pay(self) -> None:
        """Call for what no commit has called for in time."""
        try:
            while self._owed:
                early = max(self._owed_since + APART, self._not_before) - time.monotonic()
                if early > 0:
                    await asyncio.sleep(early)
                elif queues := self.take(set()):
                    with suppress(HoldfastError):  # then workers find it by looking
                        await self._send(sorted(queues))
        finally:
            self._paying = None
