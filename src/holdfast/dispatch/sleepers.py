"""The dispatchers of servers that are told who sleeps: PostgreSQL's and MongoDB's.

**Nothing is slept through.** A listener whose process is not registered registers, then claims once
more (`wait` returns at once), and only then sleeps. A submit that was under way meanwhile, and that
neither of the two has seen, is found by looking again after 5, 20, 100 and 500 ms; then by the
poll.

**Busy processes are not called.** One that has not slept for a while is registered no longer.

**Breaks.** After any break: connect again, with jitter, and wake every listener once. While there
is no connection, workers poll.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import AsyncIterator, Collection
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final, Generic, TypeVar

from holdfast.dispatch.in_process import BaseDispatcher, InProcessListener
from holdfast.dispatch.sleeper_thread import SleeperThread
from holdfast.ports.dispatcher import Listener

REPEATS: Final = (0.005, 0.02, 0.1, 0.5)
"""Seconds after which a process that has just registered looks again, in spite of no call."""

Thread = SleeperThread[Any]
W = TypeVar("W", bound=Thread)


class SleeperListener(InProcessListener):
    """Other processes can wake it through the server."""

    def __init__(self, queues: Collection[str] | None, wakeups: Thread) -> None:
        super().__init__(queues)
        self._wakeups = wakeups
        self._registration = 0
        self._repeats: list[float] = []

    async def wait(self, timeout: float) -> bool:
        """Sleep until called or for `timeout` seconds; True also if it is time to look again."""
        if not self._is_woken and self._wakeups.must_register(self._registration):
            registration = await self._wakeups.register(within=min(timeout, 1.0))
            if registration is not None:
                self._registration = registration
                self._repeats = list(REPEATS)
                self._is_woken = False
                return True
        repeat = self._repeats.pop(0) if self._repeats else None
        try:
            woken = await super().wait(timeout if repeat is None else min(timeout, repeat))
        finally:
            self._wakeups.slept()
        return woken or repeat is not None


class SleeperDispatcher(BaseDispatcher[SleeperListener], Generic[W]):
    """Wakes the workers of one store, wherever they are."""

    def __init__(self) -> None:
        super().__init__()
        self._wakeups: W
        self._begin_anew()

    def added(self, queues: Collection[str]) -> None:
        """The store's commits call other processes."""
        self._wake_here(queues)

    @asynccontextmanager
    async def listen(self, queues: Collection[str] | None) -> AsyncIterator[Listener]:
        self._check_fork()
        with ExitStack() as stack:
            with self._guard:
                listener = SleeperListener(queues, self._wakeups)
                stack.enter_context(self._keeping(listener))
            self._wakeups.start()
            yield listener

    async def mode(self) -> str:
        """`poll` if nothing can be heard on this connection, or there is none."""
        self._check_fork()
        return await self._wakeups.mode()

    async def close(self) -> None:
        wakeups, self._wakeups = self._wakeups, self._new_wakeups()
        await wakeups.close()

    @abstractmethod
    def _new_wakeups(self) -> W:
        """A thread that has not been started."""

    def _begin_anew(self) -> None:
        self._guard = threading.Lock()
        self._wakeups = self._new_wakeups()

    def _let_go(self, wakeups: W) -> bool:
        with self._guard:
            if self._listeners:
                return False
            if self._wakeups is wakeups:
                self._wakeups = self._new_wakeups()
            return True
