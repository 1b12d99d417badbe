"""A listener that is called through Redis, or by the store's own dispatcher while Redis is away."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Final, Protocol

from holdfast.dispatch.ear import Ear
from holdfast.dispatch.redis.line import Line
from holdfast.dispatch.redis.resp import Push
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

    def leave(self, ear: RedisEar) -> None:
        """It will not sleep again, nor look."""
        ...

    async def hear(self, ear: RedisEar) -> Line | None:
        """A line of its own, from where it can be called now; None if that cannot be had."""
        ...


class RedisEar(Ear):
    """Registers in Redis before it sleeps, and nowhere while it is awake.

    It hears calls over a line of its own, on the loop where it sleeps: one thread less to wake up
    on the way. Where that cannot be had, it hears them over its process's.

    Attributes:
        number: Which ear of its process it is.
        name: Where it is called: CHANNEL/NUMBER.
        was_called: Whether it has heard a call since it lay down. Then it is on no list.
        is_called_for: Whether it was called and has not been told so by `wait`.
        has_left: Whether it will never look again.
        lists: Its queues; the empty name stands for all.
        seen: The turns that it knew before it last looked for work (`sleep.lua`).
    """

    def __init__(
        self,
        process: str,
        number: int,
        queues: Collection[str] | None,
        bed: Bed,
        otherwise: Dispatcher,
    ) -> None:
        super().__init__(queues)
        self._process = process
        self.number = number
        self.name = f"{process}/{number}"
        self.was_called = False
        self.is_called_for = False
        self.has_left = False
        self.lists = ("",) if queues is None else tuple(sorted(set(queues)))
        self.seen = UNKNOWN
        self._listens_to = queues
        self._bed = bed
        self._otherwise = otherwise
        self._stack = AsyncExitStack()
        self._other: Listener | None = None
        self._line: Line | None = None
        self._has_moved = False

    async def wait(self, timeout: float) -> bool:
        """Sleep until called or for `timeout` seconds; True also if it is time to look again."""
        woken = await self._wait(timeout)
        self.is_called_for = False  # who has waited looks
        return woken

    async def _wait(self, timeout: float) -> bool:
        if self._rung or timeout < TOO_SHORT:
            return await super().wait(timeout)
        if not await self._bed.is_up():
            self._hang_up()
            return await self._wait_otherwise(timeout)
        if self._other is not None:
            await self._leave_other()
        return await self._wait_here(timeout)

    def move(self) -> None:
        """Redis is another one, or none. From any thread."""
        self.seen, self._has_moved = UNKNOWN, True
        self.ring()

    def called(self, push: Push) -> None:
        """Heard on its own line, and loop."""
        if push[:1] == [b"message"]:
            self.was_called = self.is_called_for = self._rung = True
            self._rouse()

    async def close(self) -> None:
        self.has_left = True
        self._bed.leave(self)
        self._hang_up()
        await self._leave_other()

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.drop(ConnectionError("closed"))
            self._line = None

    async def _leave_other(self) -> None:
        self._other = None
        await self._stack.aclose()

    async def _get_line(self) -> None:
        """See that its line is there, and works."""
        if self._has_moved:
            self._has_moved = False
            self._hang_up()
        if self._line is None or self._line.lost.done():
            self._line = await self._bed.hear(self)
            own = f".{self.number}" if self._line is not None else ""
            self.name = f"{self._process}{own}/{self.number}"
            if self._line is not None:
                self._line.lost.add_done_callback(lambda _: self.ring())
        else:
            self._line.ask("PING")

    async def _wait_here(self, timeout: float) -> bool:
        await self._get_line()
        self.was_called = False
        try:
            if not await asyncio.shield(asyncio.wrap_future(self._bed.sleep(self))):
                self._rung = False
                return True
            return await super().wait(timeout)
        finally:
            if not self.was_called:
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
