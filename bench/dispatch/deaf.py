"""A dispatcher that carries nothing, so that a worker finds new work only by looking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from holdfast.ports.dispatcher import Listener


class Deaf:
    """Nobody calls, nobody hears: what is left is the poll."""

    def wake(self, queues: Collection[str]) -> None:
        pass

    @asynccontextmanager
    async def listen(self, _queues: Collection[str] | None) -> AsyncIterator[Listener]:
        yield _Sleeper()

    async def mode(self) -> str:
        return "poll"

    async def close(self) -> None:
        pass


class _Sleeper:
    async def wait(self, timeout: float) -> bool:
        await asyncio.sleep(timeout)
        return False
