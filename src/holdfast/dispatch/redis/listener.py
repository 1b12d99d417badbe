"""A listener that is called through Redis, or by the store's own dispatcher while Redis is away."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from holdfast.dispatch.in_process import InProcessListener
from holdfast.dispatch.redis.scripts import UNKNOWN
from holdfast.ports.dispatcher import Dispatcher, Listener

if TYPE_CHECKING:
    from holdfast.dispatch.redis.wakeups import RedisWakeups

TOO_SHORT: Final = 0.005
"""Seconds; nobody is told of a nap shorter than this."""


class RedisListener(InProcessListener):
    """Registers in Redis before it sleeps, and is registered nowhere while it is awake.

    Attributes:
        name: Where it is called: PROCESS/NUMBER.
        lists: Its queues; the empty name stands for all.
        seen: The turns that it knew before it last looked for work (`sleep.lua`).
        is_listed: Whether Redis was told that it sleeps, and has not called it since.
        is_called: Whether it was called and has not been told so by `wait`.
        has_left: Whether it will never look again.
    """

    def __init__(
        self,
        number: int,
        queues: Collection[str] | None,
        wakeups: RedisWakeups,
        fallback: Dispatcher,
    ) -> None:
        super().__init__(queues)
        self.number = number
        self.name = f"{wakeups.process}/{number}"
        self.lists = ("",) if queues is None else tuple(sorted(set(queues)))
        self.seen = UNKNOWN
        self.is_listed = False
        self.is_called = False
        self.has_left = False
        self._wakeups = wakeups
        self._fallback = fallback
        self._stack = AsyncExitStack()
        self._other: Listener | None = None

    async def wait(self, timeout: float) -> bool:
        """Sleep until called or for `timeout` seconds; True also if it is time to look again."""
        if self._is_woken or timeout < TOO_SHORT:
            woken = await super().wait(timeout)
        elif await self._wakeups.is_up():
            await self._leave_other()
            woken = await self._wait_registered(timeout)
        else:
            woken = await self._wait_otherwise(timeout)
        self.is_called = False  # who has waited looks
        return woken

    def call(self) -> None:
        """Somebody has work for it. From any thread."""
        self.is_listed, self.is_called = False, True
        self.wake()

    def forget(self) -> None:
        """Redis is another one, or none. From any thread."""
        self.is_listed, self.seen = False, UNKNOWN
        self.wake()

    async def close(self) -> None:
        self.has_left = True
        self._wakeups.leave(self)
        await self._leave_other()

    async def _leave_other(self) -> None:
        self._other = None
        await self._stack.aclose()

    async def _wait_registered(self, timeout: float) -> bool:
        self.is_called = False
        asked = self._wakeups.sleep(self)
        try:
            if asked is None or not await asyncio.shield(asyncio.wrap_future(asked)):
                self._is_woken = False
                return True
            return await super().wait(timeout)
        finally:
            if not self.is_called:
                self._wakeups.awake(self)

    async def _wait_otherwise(self, timeout: float) -> bool:
        if self._other is None:
            self._other = await self._stack.enter_async_context(self._fallback.listen(self.queues))
            return True  # what was submitted before it listened must be found by looking
        waits = {
            asyncio.ensure_future(self._other.wait(timeout)),
            asyncio.ensure_future(super().wait(timeout)),  # woken when Redis is back
        }
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            return any(wait.result() for wait in done)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
