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
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

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
        self._owed |= queues
        if self._owed and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(APART, self._pay)

    async def finish(self) -> None:
        """Call for all that is owed, now."""
        self._not_before = 0.0
        self._pay()
        if self._sending is not None:
            await asyncio.wait([self._sending])

    def _pay(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if queues := self.take(set()):
            self._sending = asyncio.get_running_loop().create_task(self._call(sorted(queues)))
        else:
            self.owe(set())  # later, if a commit has just called for others

    async def _call(self, queues: list[str]) -> None:
        with suppress(HoldfastError):  # then workers find it by looking
            await self._send(queues)
