"""Wake-ups within one process, for `memory://`: submitters and workers share one memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from holdfast.dispatch.ear import Ear
from holdfast.ports.dispatcher import Listener


class InProcessDispatcher:
    """Rings the ears of this process, across threads and event loops."""

    def __init__(self) -> None:
        # Replaced, never changed: `wake` reads it from any thread without a lock.
        self._ears: tuple[Ear, ...] = ()

    def wake(self, queues: Collection[str]) -> None:
        for ear in self._ears:
            if ear.hears(queues):
                ear.ring()

    @asynccontextmanager
    async def listen(self, queues: Collection[str] | None) -> AsyncIterator[Listener]:
        ear = Ear(queues)
        self._ears = (*self._ears, ear)
        try:
            yield ear
        finally:
            self._ears = tuple(other for other in self._ears if other is not ear)

    async def mode(self) -> str:
        return "memory"

    async def close(self) -> None:
        self._ears = ()


class PollingDispatcher(InProcessDispatcher):
    """For a store that wakes nobody, as MongoDB: other processes find new work by looking, every
    `poll` seconds; sleepers of this process are still called.
    """

    async def mode(self) -> str:
        return "poll"
