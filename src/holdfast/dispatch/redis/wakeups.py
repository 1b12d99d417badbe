"""Tells Redis who of this process sleeps, calls others, hears calls: over one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final

from holdfast.dispatch.calls import Calls
from holdfast.dispatch.connection_thread import GOODBYE, ConnectionThread
from holdfast.dispatch.redis.address import Address
from holdfast.dispatch.redis.connection import RedisConnection
from holdfast.dispatch.redis.listener import RedisListener
from holdfast.dispatch.redis.locate import connect
from holdfast.dispatch.redis.resp import Push
from holdfast.dispatch.redis.scripts import UNKNOWN, Scripts

APART: Final = 0.002
IN_VAIN: Final = 0.005
BEAT: Final = 1.0
"""Seconds between two looks whether Redis is there and knows who sleeps."""
FIND_OUT: Final = 3.0
"""Seconds to find out whether Redis is there at all."""
LATER: Final = (0.01, 0.05, 0.25)
"""Seconds after which a transaction may have committed."""


class RedisWakeups(ConnectionThread[RedisConnection]):
    """All methods without an underscore may be called from any thread.

    Args:
        address: Where Redis is.
        store: Tells the name of the store, which its keys begin with.
        process: This process's name among all.
        listeners: Those of this process.
        otherwise: Wakes without Redis.
    """

    def __init__(
        self,
        address: Address,
        store: Callable[[], Awaitable[str]],
        process: str,
        *,
        listeners: Callable[[], Sequence[RedisListener]],
        otherwise: Callable[[Mapping[str, int]], None],
    ) -> None:
        super().__init__(every=BEAT, within=FIND_OUT, calls=Calls(apart=APART, in_vain=IN_VAIN))
        self.process = process
        self._address = address
        self._store = store
        self._listeners = listeners
        self._otherwise = otherwise
        self._store_name = ""

    def call_later(self, queues: Mapping[str, int]) -> None:
        """Call a few times, at growing intervals."""
        self.start()
        self._soon(self._plan, queues)

    def sleep(self, listener: RedisListener) -> Future[bool] | None:
        return self._run(self._lie_down(listener))

    def awake(self, listener: RedisListener) -> None:
        self._run(self._get_up(listener))

    def leave(self, listener: RedisListener) -> None:
        """It will not sleep again, nor look: a call that it has not followed is for another."""
        self._run(self._forget(listener))

    # On its own loop

    async def _connect(self, attempt: int) -> RedisConnection:
        if not self._store_name:
            self._store_name = await self._ask_name()
        async with asyncio.timeout(FIND_OUT):
            connection = await connect(
                self._address, self._store_name, attempt=attempt, heard=self._heard
            )
            try:
                scripts = Scripts(connection, self._store_name)
                connection.tell("SUBSCRIBE", scripts.channel(self.process))
                await scripts.load()
                await scripts.try_out(self.process)
            except BaseException as error:
                connection.drop(ConnectionError(str(error)))
                raise
        self._scripts = scripts
        return connection

    async def _ask_name(self) -> str:
        try:
            return await self._store()
        except Exception as error:
            raise ConnectionError(f"the store does not tell its name: {error}") from error

    def _how(self) -> Mapping[str, str]:
        return {"mode": "redis", "address": str(self._address)}

    def _story(self, error: str) -> str:
        return (
            f"no wake-ups through Redis at {self._address}: {error}; "
            "by the store's own way, or polling, until it is back"
        )

    def _changed(self, connection: RedisConnection | None) -> None:
        self._calls.use(self._call_otherwise if connection is None else self._call)
        for listener in self._listeners():
            listener.forget()

    async def _look_after(self, connection: RedisConnection) -> None:
        """Have everybody sleep on; wake those of whom Redis does not know."""
        asleep = [listener for listener in self._listeners() if listener.is_listed]
        lists = sorted({queue for listener in asleep for queue in listener.lists})
        lost = await self._scripts.beat([listener.name for listener in asleep], lists)
        for listener in asleep:
            if listener.is_listed and listener.name.encode() in lost:
                listener.is_listed = False
                listener.wake()

    async def _leave(self) -> None:
        if self.connection is not None:
            await self.connection.rest()  # somebody may have left, and passes on its call
        left = await self._calls.finish(GOODBYE)
        if left:
            self._otherwise(left)

    def _plan(self, queues: Mapping[str, int]) -> None:
        for pause in LATER:
            asyncio.get_running_loop().call_later(pause, self.call, queues)

    async def _call(self, queues: Mapping[str, int]) -> bool:
        connection = self.connection
        try:
            return bool(await self._scripts.wake(queues))
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection is of no use
            if connection is not None:
                connection.drop(error)
            return await self._call_otherwise(queues)

    async def _call_otherwise(self, queues: Mapping[str, int]) -> bool:
        self._otherwise(queues)
        return True

    def _heard(self, push: Push) -> None:
        """Somebody called one of ours."""
        if push[:1] == [b"message"] and isinstance(push[2], bytes):
            number = int(push[2])
            for listener in self._listeners():
                if listener.number == number:
                    listener.call()

    async def _lie_down(self, listener: RedisListener) -> bool:
        """Have it called; False if it must look for work before."""
        connection = self.connection
        if connection is None:
            return False
        listener.is_listed = True  # before the answer: a call may be heard with it
        try:
            turns = await self._scripts.sleep(listener.name, listener.lists, listener.seen)
        except Exception as error:  # noqa: BLE001 - as above
            connection.drop(error)
            turns = UNKNOWN
        if isinstance(turns, bytes):
            listener.is_listed = False
            listener.seen = turns
        return turns is None

    async def _get_up(self, listener: RedisListener) -> None:
        """Have it called no longer, if it was not."""
        was_listed, listener.is_listed = listener.is_listed, False
        if was_listed and not await self._strike(listener):
            listener.is_called = True  # and it will hear that yet
            if listener.has_left:
                self._pass_on(listener)

    async def _forget(self, listener: RedisListener) -> None:
        """Here and in Redis: who was called for one queue is still listed for others."""
        was_listed, listener.is_listed = listener.is_listed, False
        if listener.is_called:
            self._pass_on(listener)
        if not await self._strike(listener) and was_listed:
            self._pass_on(listener)

    def _pass_on(self, listener: RedisListener) -> None:
        listener.is_called = False
        self.call(dict.fromkeys(listener.lists, 1))

    async def _strike(self, listener: RedisListener) -> bool:
        """Off all lists; False if somebody has called it."""
        if self.connection is None:
            return True
        try:
            return await self._scripts.awake(listener.name, listener.lists) != 0
        except Exception:  # noqa: BLE001 - a connection that is lost notices by itself
            return True
