"""Reads a change stream, while there is somebody to wake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from holdfast.asyncio_tools.cancel import end
from holdfast.dispatch.connection_thread import GOODBYE
from holdfast.dispatch.sleeper_thread import PATIENCE
from holdfast.errors import StoreRefused
from holdfast.logs import EventLog

log = EventLog(__name__)

APART: Final = 0.003
"""Seconds between two readings: who is woken takes all that is there."""


class Stream(Protocol):
    async def heard(self) -> set[str]:
        """The queues of all that has come since; waits for a while if nothing has."""
        ...

    async def close(self) -> None: ...


class Watching(Protocol):
    async def watch(self, queues: frozenset[str] | None) -> Stream:
        """Open a stream. StoreRefused: there cannot be one."""
        ...

    async def close(self) -> None: ...


class MongoConnection:
    """Open until it is `lost`, which says why.

    Attributes:
        can_hear: Whether the server has change streams for us.
    """

    def __init__(self, watching: Watching, heard: Callable[[str], None]) -> None:
        self._watching = watching
        self._heard = heard
        self._reading: asyncio.Task[None] | None = None
        self.can_hear = True
        self.lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def try_out(self) -> None:
        """Find out whether there can be streams."""
        try:
            stream = await self._watching.watch(frozenset())
        except StoreRefused as error:
            self.can_hear = False
            log.info("dispatch.no_streams", error=str(error))
            await self._watching.close()
        else:
            await stream.close()

    async def watch(self, queues: frozenset[str] | None) -> bool:
        """Hear of these queues from now on, and of no others. True if it is another stream now:
        what the last one was about to tell is lost.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                stream = await self._watching.watch(queues)
        except Exception as error:
            self.drop(error)
            raise
        last, self._reading = self._reading, asyncio.create_task(self._read(stream))
        await _stop(last)
        return last is not None

    async def rest(self) -> None:
        """Hear nothing any more."""
        last, self._reading = self._reading, None
        await _stop(last)

    def drop(self, why: Exception) -> None:
        """Let go of it at once."""
        if not self.lost.done():
            self.lost.set_result(why)
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self, stream: Stream) -> None:
        try:
            while True:
                for queue in await stream.heard():
                    self._heard(queue)
                await asyncio.sleep(APART)
        except Exception as error:  # noqa: BLE001 - whatever it is, this stream is of no use
            self.drop(error)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(GOODBYE):
                    await stream.close()


async def _stop(reading: asyncio.Task[None] | None) -> None:
    if reading is not None:
        await end({reading}, again=GOODBYE)
