"""A listener that is called through Redis, or by the store's own dispatcher while Redis is away."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Final, Protocol

from holdfast.dispatch.ear import Ear
from holdfast.dispatch.redis.scripts import UNKNOWN
from holdfast.ports.dispatcher import Dispatcher, Listener

TOO_SHORT: Final = 0.005
"""Seconds; nobody is told of a nap shorter than this."""


class Bed(Protocol):
    """Where an ear lies down."""

    async def is_up(self) -> bool:
        """Whether Redis is there; waits for the first answer to that."""
        ...

    def sleep(self, ear: RedisEar) -> Future[bool]:
        """Have it called; False if it must look for work before."""
        ...

    def awake(self, ear: RedisEar) -> None:
        """Have it called no longer."""
        ...


class RedisEar(Ear):
    """Registers in Redis before it sleeps, and nowhere while it is awake.

    Attributes:
        number: Which ear of its process it is.
        lists: Its queues; the empty name stands for all.
        seen: The turns that it knew before it last looked for work (`sleep.lua`).
    """

    def __init__(
        self, number: int, queues: Collection[str] | None, bed: Bed, otherwise: Dispatcher
    ) -> None:
        super().__init__(queues)
        self.number = number
        self.lists = ("",) if queues is None else tuple(sorted(set(queues)))
        self.seen = UNKNOWN
        self._listens_to = queues
        self._bed = bed
        self._otherwise = otherwise
        self._stack = AsyncExitStack()
        self._other: Listener | None = None

    async def wait(self, timeout: float) -> bool:
        """Sleep until called or for `timeout` seconds; True also if it is time to look again."""
        if self._rung or timeout < TOO_SHORT:
            return await super().wait(timeout)
        if not await self._bed.is_up():
            return await self._wait_otherwise(timeout)
        if self._other is not None:
            await self.close()
        return await self._wait_here(timeout)

    async def close(self) -> None:
        """Leave the store's own dispatcher."""
        self._other = None
        await self._stack.aclose()

    async def _wait_here(self, timeout: float) -> bool:
        try:
            if not await asyncio.shield(asyncio.wrap_future(self._bed.sleep(self))):
                self._rung = False
                return True
            return await super().wait(timeout)
        finally:
            self._bed.awake(self)

    async def _wait_otherwise(self, timeout: float) -> bool:
        if self._other is None:
            self._other = await self._stack.enter_async_context(
                self._otherwise.listen(self._listens_to)
            )
            return True  # what was submitted before it listened must be found by looking
        waits = {
            asyncio.ensure_future(self._other.wait(timeout)),
            asyncio.ensure_future(super().wait(timeout)),  # rung when Redis is back
        }
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            return any(wait.result() for wait in done)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
