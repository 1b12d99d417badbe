"""Wake-ups within one process, for `memory://`; the other dispatchers stand on it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Generic, TypeVar

from holdfast.ports.dispatcher import Dispatcher, Listener

L = TypeVar("L", bound="InProcessListener")


class InProcessListener:
    """A `Listener` that threads of this process can wake.

    It remembers *that* it was woken, not how often: the worker claims everything it can afterwards.
    So a submitter that finds it woken already does nothing, which makes wake-ups free while the
    worker is busy. One that races with the end of a wait may be forgotten; that loses nothing,
    because a worker claims after every wait, and the task was stored before the wake-up.
    """

    def __init__(self, queues: Collection[str] | None) -> None:
        self.queues = None if queues is None else frozenset(queues)
        self._loop = asyncio.get_running_loop()
        self._is_woken = False
        self._sleeper: asyncio.Future[None] | None = None

    @property
    def is_asleep(self) -> bool:
        return self._sleeper is not None

    def serves(self, queues: Collection[str]) -> bool:
        """Whether work in any of these queues concerns this listener."""
        return self.queues is None or not self.queues.isdisjoint(queues)

    def wake(self) -> None:
        """Wake it, now or when it next wants to sleep. From any thread."""
        if self._is_woken:
            return
        self._is_woken = True
        with suppress(RuntimeError):  # The loop is closed: nobody sleeps here any more.
            self._loop.call_soon_threadsafe(self._end_sleep)

    async def wait(self, timeout: float) -> bool:
        """Sleep until woken or for `timeout` seconds; True if woken."""
        if not self._is_woken:
            await self._sleep(timeout)
        woken = self._is_woken
        self._is_woken = False
        return woken

    async def _sleep(self, timeout: float) -> None:
        sleeper = self._sleeper = self._loop.create_future()
        timer = self._loop.call_later(timeout, _finish, sleeper)
        try:
            await sleeper
        finally:
            timer.cancel()
            self._sleeper = None

    def _end_sleep(self) -> None:
        # A wait that ended meanwhile has consumed the wake-up; it must not cut short the next one.
        if self._is_woken and self._sleeper is not None:
            _finish(self._sleeper)


class BaseDispatcher(Dispatcher, Generic[L]):
    """Keeps the listeners of this process, and wakes them across threads and event loops."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        # Replaced, never changed: it is read from any thread without a lock.
        self._listeners: tuple[L, ...] = ()

    def _wake_here(self, queues: Collection[str]) -> None:
        self._check_fork()
        for listener in self._listeners:
            if listener.serves(queues):
                listener.wake()

    @contextmanager
    def _keeping(self, listener: L) -> Iterator[L]:
        self._listeners = (*self._listeners, listener)
        try:
            yield listener
        finally:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

    def _check_fork(self) -> None:
        """In a child, listeners, threads and sockets are the parent's; this one begins anew."""
        if os.getpid() != self._owner:
            self._owner, self._listeners = os.getpid(), ()
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget connections without closing them."""


class InProcessDispatcher(BaseDispatcher[InProcessListener]):
    """For a store in memory, which is nobody else's."""

    def wake(self, queues: Collection[str]) -> None:
        self._wake_here(queues)

    @asynccontextmanager
    async def listen(self, queues: Collection[str] | None) -> AsyncIterator[Listener]:
        with self._keeping(InProcessListener(queues)) as listener:
            yield listener

    async def mode(self) -> str:
        return "memory"

    async def close(self) -> None:
        self._listeners = ()


def _finish(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
