"""Calls to sleepers in other processes, gathered: one is under way at a time, what is asked for
meanwhile goes with the next. So a single one leaves at once, and a thousand a second become few.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

Way = Callable[[Mapping[str, int]], Awaitable[bool]]
"""Calls so many sleepers of each queue; whether anybody slept. Does not raise."""


class Calls:
    """What is to be called. `ask_for` from any thread, all else on the connection's loop.

    Args:
        apart: Seconds between two calls, however many are asked for: who is called takes all that
            is there.
        in_vain: The same after a call that found nobody asleep: all are busy, calls would only
            cost.
    """

    def __init__(self, *, apart: float, in_vain: float) -> None:
        self._apart = apart
        self._in_vain = in_vain
        self._guard = threading.Lock()
        self._wanted: dict[str, int] = {}
        self._is_busy = False
        self._not_before = 0.0
        self._way: Way | None = None
        self._making: asyncio.Task[None] | None = None

    def ask_for(self, queues: Mapping[str, int]) -> bool:
        """Note so many calls for each queue. True if somebody must `make` them."""
        with self._guard:
            for queue, count in queues.items():
                self._wanted[queue] = self._wanted.get(queue, 0) + count
            is_first, self._is_busy = not self._is_busy, True
            return is_first

    def use(self, way: Way | None) -> None:
        """From now on call in this way; None: keep what is asked for until there is one."""
        self._way = way
        if self._wanted:
            self.make()

    def make(self) -> None:
        """Make the calls that are asked for, and those asked for until these are made."""
        if self._way is not None and (self._making is None or self._making.done()):
            self._making = asyncio.get_running_loop().create_task(self._make())

    async def finish(self, within: float) -> Mapping[str, int]:
        """Have all calls made in so many seconds; those that could not be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self._is_busy:  # noqa: ASYNC110 - at the very end, for an instant
                    await asyncio.sleep(0.002)
        return self._take()

    @property
    def are_made(self) -> bool:
        return not self._is_busy

    async def _make(self) -> None:
        while True:
            await asyncio.sleep(self._not_before - time.monotonic())
            way = self._way
            if way is None or not (queues := self._take()):
                return
            has_called = await way(queues)
            self._not_before = time.monotonic() + (self._apart if has_called else self._in_vain)

    def _take(self) -> Mapping[str, int]:
        with self._guard:
            queues, self._wanted = self._wanted, {}
            self._is_busy = bool(queues)
            return queues
