"""An ear remembers one wake-up for one sleeper on one event loop, from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress


class Ear:
    """A `Listener` that threads of this process can ring.

    It remembers *that* it was rung, not how often: the worker claims everything it can afterwards.
    So a submitter that finds the ear rung already does nothing, which makes wake-ups free while the
    worker is busy. A ring that races with the end of a wait may be forgotten; that loses nothing,
    because a worker claims after every wait, and the ringer's task was stored before it rang.
    """

    def __init__(self, queues: Collection[str] | None) -> None:
        self._queues = None if queues is None else frozenset(queues)
        self._loop = asyncio.get_running_loop()
        self._rung = False
        self._sleeper: asyncio.Future[None] | None = None

    def hears(self, queues: Collection[str]) -> bool:
        """Whether work in any of these queues concerns this listener."""
        return self._queues is None or not self._queues.isdisjoint(queues)

    def ring(self) -> None:
        """Wake the sleeper, now or when it next wants to sleep. From any thread."""
        if self._rung:
            return
        self._rung = True
        with suppress(RuntimeError):  # The loop is closed: nobody sleeps here any more.
            self._loop.call_soon_threadsafe(self._rouse)

    async def wait(self, timeout: float) -> bool:
        """Sleep until rung or for `timeout` seconds; True if rung."""
        if not self._rung:
            await self._sleep(timeout)
        woken = self._rung
        self._rung = False
        return woken

    async def _sleep(self, timeout: float) -> None:
        sleeper = self._sleeper = self._loop.create_future()
        timer = self._loop.call_later(timeout, _finish, sleeper)
        try:
            await sleeper
        finally:
            timer.cancel()
            self._sleeper = None

    def _rouse(self) -> None:
        # A wait that ended meanwhile has consumed the ring; it must not cut short the next one.
        if self._rung and self._sleeper is not None:
            _finish(self._sleeper)


def _finish(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
