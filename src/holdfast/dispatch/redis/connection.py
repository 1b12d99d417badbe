"""One connection to a Redis server: asks in order, hears calls in between.

Lives on one event loop. The server has `PATIENCE` for each answer; one that takes longer is as good
as away, and the connection is dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Self, cast

from holdfast.dispatch.redis.address import Address, Host
from holdfast.dispatch.redis.resp import ErrorReply, Push, Reader, Reply, command

PATIENCE: Final = 0.3
"""Seconds for an answer."""
AT_THE_DOOR: Final = 1.0
"""Seconds to be let in. A host that is gone does not even say so."""

Word = str | bytes | int


class RedisConnection(asyncio.Protocol):
    """Open until it is `lost`."""

    def __init__(self, heard: Callable[[Push], None]) -> None:
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._reader = Reader()
        self._asked: deque[tuple[asyncio.Future[Reply], float]] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.lost: asyncio.Future[Exception] = self._loop.create_future()
        """Done when the connection is; says why."""

    @classmethod
    async def open(cls, address: Address, host: Host, heard: Callable[[Push], None]) -> Self:
        """Connect. OSError says why not."""
        try:
            async with asyncio.timeout(AT_THE_DOOR):
                return await cls._connect(address, host, heard)
        except TimeoutError as error:
            raise TimeoutError(str(error) or "no connection in time") from None

    @classmethod
    async def _connect(cls, address: Address, host: Host, heard: Callable[[Push], None]) -> Self:
        loop = asyncio.get_running_loop()
        if address.path:
            _, made = await loop.create_unix_connection(lambda: cls(heard), address.path)
        else:
            _, made = await loop.create_connection(lambda: cls(heard), *host, ssl=address.tls)
        return made

    def ask(self, *words: Word, patience: float = PATIENCE) -> asyncio.Future[Reply]:
        """Send a command; its answer comes, `ErrorReply` is raised, or the connection is lost."""
        answer: asyncio.Future[Reply] = self._loop.create_future()
        if self.lost.done():
            _fail(answer, self.lost.result())
            return answer
        self._asked.append((answer, self._loop.time() + patience))
        self.tell(*words)
        self._watch_over()
        return answer

    def tell(self, *words: Word) -> None:
        """Send a command that is not answered, but by what is heard: `SUBSCRIBE`."""
        if self._transport is not None:
            self._transport.write(command(*words))

    def drop(self, why: Exception) -> None:
        """Let go of the connection at once."""
        if self.lost.done():
            return
        self.lost.set_result(why)
        if self._watch is not None:
            self._watch.cancel()
        if self._transport is not None:
            self._transport.abort()
        asked, self._asked = self._asked, deque()
        for answer, _ in asked:
            _fail(answer, why)

    async def rest(self) -> None:
        """Until all that was asked is answered, or the connection is lost."""
        if self._asked:
            await asyncio.wait({self._asked[-1][0]})

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's only looks like one

    def data_received(self, data: bytes) -> None:
        try:
            for reply in self._reader.feed(data):
                self._received(reply)
        except (ValueError, IndexError) as error:
            self.drop(ConnectionError(str(error)))

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop(exc or ConnectionError("the server closed the connection"))

    def _received(self, reply: Reply) -> None:
        if isinstance(reply, Push):
            self._heard(reply)
            return
        answer, _ = self._asked.popleft()
        if isinstance(reply, ErrorReply):
            _fail(answer, reply)
        elif not answer.done():
            answer.set_result(reply)

    def _watch_over(self) -> None:
        if self._watch is None and self._asked:
            self._watch = self._loop.call_at(self._asked[0][1], self._look)

    def _look(self) -> None:
        """One timer watches over all that was asked."""
        self._watch = None
        if self._asked:
            left = self._asked[0][1] - self._loop.time()
            if left <= 0:
                self.drop(TimeoutError("no answer in time"))
            else:
                self._watch = self._loop.call_later(left, self._look)


def _fail(answer: asyncio.Future[Reply], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # whoever does not ask for it does not need it
