"""A bad network on the loopback: a TCP proxy that delays, stalls, and cuts where it hurts.

    with Proxy(server.port) as proxy:
        url = server.url("shop", port=proxy.port)
        ambush = proxy.ambush("COMMIT", Fate.LOSE_ANSWER)   # the next one commits, nobody hears it
        …
        assert ambush.sprung.wait(5)

        proxy.rule = lambda sql: Fate.CUT_ANSWER if random() < 0.01 else None   # a storm
        proxy.cut()                                          # every connection, now
        proxy.stall(); …; proxy.resume()                     # nothing passes, nothing breaks

It runs in a thread of its own, so that tests may block. It understands where a request of
PostgreSQL ends and where its answer does, and decides at the end of a request, when the server is
about to commit: that is the only instant at which the outcome can be in doubt. A subclass for
another protocol names the two classes that understand it (`asked`, `answered`).
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import re
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Self, TypeVar

from tests.kit.servers.wire import Answered, Asked

T = TypeVar("T")

CHUNK = 65_536


class Fate(enum.Enum):
    """What becomes of a request and its answer."""

    LOSE_REQUEST = "cut before the server hears it: it did not happen"
    LATE_REQUEST = "cut, but the server hears it `slowness` seconds later: it will yet happen"
    LOSE_ANSWER = "cut when the server has answered: it happened, and nobody was told"
    CUT_ANSWER = "cut in the middle of the answer"
    STALL = "the answer is held until `resume`"
    DELAY = "the answer comes `slowness` seconds late"


Rule = Callable[[str], Fate | None]


class Ambush:
    """Waits for the requests whose SQL matches, and gives the first `times` of them a fate."""

    def __init__(self, pattern: str, fate: Fate, times: int) -> None:
        self.sprung = threading.Event()
        self.left = times
        self._pattern = re.compile(pattern, re.IGNORECASE)
        self._fate = fate

    def __call__(self, sql: str) -> Fate | None:
        if self.left == 0 or not self._pattern.search(sql):
            return None
        self.left -= 1
        self.sprung.set()
        return self._fate


class Proxy:
    """Listens on a free port of the loopback and passes on to `target`, another one.

    Attributes:
        asked: Understands what a client says, and says where a request ends.
        answered: Says where the server's answer ends.
        rule: Called with the SQL of each request; says what becomes of it.
        latency: Seconds that every answer takes longer.
        slowness: Seconds of `Fate.DELAY` and `Fate.LATE_REQUEST`.
        seen: The SQL of all requests so far, if `records`.
    """

    asked: ClassVar[type[Asked]] = Asked
    answered: ClassVar[type[Answered]] = Answered

    def __init__(self, target: int, *, records: bool = False) -> None:
        self.target = target
        self.rule: Rule = lambda sql: None
        self.latency = 0.0
        self.slowness = 0.2
        self.seen: list[str] | None = [] if records else None
        self._ambushes: list[Ambush] = []
        self._links: set[Link] = set()
        self._stalled: list[asyncio.Event] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server = self._do(asyncio.start_server(self._welcome, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def ambush(self, pattern: str, fate: Fate, *, times: int = 1) -> Ambush:
        """Have the next requests that match the regular expression meet that fate."""
        self._ambushes.append(Ambush(pattern, fate, times))
        return self._ambushes[-1]

    def cut(self) -> int:
        """Break every connection at once; how many there were."""
        return self._do(self._cut())

    def stall(self) -> None:
        """Let no byte through either way, and break nothing."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def resume(self) -> None:
        """End `stall`, and pass on the answers that met `Fate.STALL`."""
        self._do(self._resume())

    @property
    def held(self) -> int:
        """How many answers have met `Fate.STALL` and wait for `resume`."""
        return len(self._stalled)

    def close(self) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- for its links ---------------------------------------------------------------------------

    async def flow(self) -> None:
        """Pass when nothing is stalled."""
        await self._flowing.wait()

    async def release(self) -> None:
        """Pass at the next `resume`."""
        self._stalled.append(released := asyncio.Event())
        await released.wait()

    def fate_of(self, sql: str) -> Fate | None:
        if self.seen is not None:
            self.seen.append(sql)
        rules: list[Rule] = [*self._ambushes, self.rule]
        for rule in rules:
            if (fate := rule(sql)) is not None:
                return fate
        return None

    # -- in its own thread -----------------------------------------------------------------------

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        link = Link(self, (reader, writer), server)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    async def _cut(self) -> int:
        for link in (links := set(self._links)):
            link.cut()
        return len(links)

    async def _resume(self) -> None:
        self._flowing.set()
        while self._stalled:
            self._stalled.pop().set()

    async def _close(self) -> None:
        self._server.close()
        await self._resume()
        deadline = self._loop.time() + 5
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await self._cut()  # again: somebody may have been on the way in
            await asyncio.wait(others, timeout=0.1)  # not cancelled: asyncio calls that an error
            if self._loop.time() > deadline:
                break


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link:
    """One connection through the proxy: a pump each way, and the fate of the current request."""

    def __init__(self, proxy: Proxy, client: Stream, server: Stream) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._asked, self._answered = proxy.asked(), proxy.answered()
        self._fate: Fate | None = None

    async def run(self) -> None:
        """Until either side ends, or a fate does."""
        pumps = {asyncio.ensure_future(self._ask()), asyncio.ensure_future(self._answer())}
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self.cut()

    def cut(self) -> None:
        for writer in (self._to_client, self._to_server):
            writer.transport.abort()

    async def _ask(self) -> None:
        while data := await self._from_client.read(CHUNK):
            await self._proxy.flow()
            for message in self._asked.feed(data):
                if self._asked.ends_turn(message):
                    self._fate = self._proxy.fate_of(self._asked.sql)
                    if self._fate is Fate.LOSE_REQUEST:
                        return
                    if self._fate is Fate.LATE_REQUEST:
                        await self._be_late(message.data)
                self._to_server.write(message.data)
            await self._to_server.drain()

    async def _answer(self) -> None:
        held = b""
        while data := await self._from_server.read(CHUNK):
            await self._proxy.flow()
            held += data
            if self._asked.awaits_byte:
                self._asked.awaits_byte = False
                ended = True
            else:
                ended = self._answered.turns_ended_by(data) > 0
            if self._fate is None:
                await asyncio.sleep(self._proxy.latency)
            elif not ended:
                continue
            elif await self._is_cut(held):
                return
            self._to_client.write(held)
            held = b""
            await self._to_client.drain()
        await self._part(held)

    async def _be_late(self, request: bytes) -> None:
        """Ends when the server has answered, to nobody: then `_answer` ends the connection."""
        self._to_client.transport.abort()
        await asyncio.sleep(self._proxy.slowness)
        self._to_server.write(request)
        await asyncio.get_running_loop().create_future()

    async def _is_cut(self, answer: bytes) -> bool:
        """Let the answer meet its fate; whether that was the end of the connection."""
        fate, self._fate = self._fate, None
        match fate:
            case Fate.STALL:
                await self._proxy.release()
            case Fate.DELAY:
                await asyncio.sleep(self._proxy.slowness)
            case Fate.CUT_ANSWER:
                await self._part(answer[: max(1, len(answer) // 2)])
                return True
            case _:
                return True
        return False

    async def _part(self, last: bytes) -> None:
        """Let these bytes arrive before the connection ends; an abort would drop them."""
        self._to_client.write(last)
        self._to_client.close()
        with contextlib.suppress(OSError):
            await self._to_client.wait_closed()
