"""The process's one connection to Redis, on a thread and an event loop of its own.

Neither a worker's busy loop nor a sync caller without any can hold it up. What may be called from
any thread only leaves word; what talks to Redis runs on the board's loop and never waits there: it
asks, and goes on when the answer comes.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

from holdfast.dispatch.redis.address import Address
from holdfast.dispatch.redis.beds import Beds
from holdfast.dispatch.redis.calls import Calls
from holdfast.dispatch.redis.ear import RedisEar
from holdfast.dispatch.redis.finding import open_ear, open_line
from holdfast.dispatch.redis.line import Line
from holdfast.dispatch.redis.resp import Refused
from holdfast.dispatch.redis.scripts import Scripts
from holdfast.ending import end
from holdfast.logs import EventLog

log = EventLog(__name__)

BEAT: Final = 1.0
"""Seconds between two looks whether Redis is there and knows who sleeps."""
FIND_OUT: Final = 3.0
"""Seconds to find out whether Redis is there at all."""
LATER: Final = (0.01, 0.05, 0.25)
"""Seconds after which a transaction may have committed."""
PARTING: Final = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class Board:
    """Keeps the connection, for the calls and the beds of this process.

    Args:
        address: where Redis is.
        store: tells the name of the store, which its keys begin with.
        process: this process's name among all.
        otherwise: wakes without Redis.
        rest: lets go of what that needs, if nobody uses it.
    """

    def __init__(
        self,
        address: Address,
        store: Callable[[], Awaitable[str]],
        process: str,
        *,
        otherwise: Callable[[Mapping[str, int]], None],
        rest: Callable[[], Awaitable[None]],
    ) -> None:
        self._address = address
        self._store = store
        self.process = process
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing = False
        self._known: Future[None] = Future()
        self._line: Line | None = None
        self._scripts: Scripts | None = None
        self._rest = rest
        self._resting: asyncio.Future[None] | None = None
        self._calls = Calls(otherwise)
        self._beds = Beds(self.call)

    # From any thread

    @property
    def is_away(self) -> bool:
        """Whether Redis is known not to be there."""
        return self._line is None and self._known.done()

    def start(self) -> None:
        """Begin to connect, unless that was begun before."""
        with self._guard:
            if self._thread is None and not self._closing:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._work, args=(self._loop,), name="holdfast-redis", daemon=True
                )
                self._thread.start()

    async def is_up(self) -> bool:
        """Whether Redis is there; waits for the first answer to that."""
        if not self._known.done():
            self.start()
            known = asyncio.shield(asyncio.wrap_future(self._known))
            with suppress(TimeoutError):
                await asyncio.wait_for(known, FIND_OUT)
        return self._line is not None

    def call(self, queues: Mapping[str, int]) -> None:
        """Wake so many sleepers of these queues, soon."""
        if self._calls.ask_for(queues) and not self._calls.make_here():
            self.start()
            self._soon(self._calls.make)

    def call_later(self, queues: Mapping[str, int]) -> None:
        """The same a few times, at growing intervals."""
        self.start()
        self._soon(self._plan, queues)

    def serve(self, ears: Mapping[int, RedisEar]) -> None:
        """These are all ears of this process."""
        self._beds.ears = ears

    def sleep(self, ear: RedisEar) -> Future[bool]:
        """Have this ear called; False if it must look for work before."""
        answer: Future[bool] = Future()
        if not self._soon(self._beds.lie_down, ear, answer):
            answer.set_result(False)
        return answer

    def awake(self, ear: RedisEar) -> None:
        """Have it called no longer."""
        self._soon(self._beds.get_up, ear)

    def leave(self, ear: RedisEar) -> None:
        """It will not sleep again, nor look: a call that it has not followed is for another."""
        if ear.is_called_for:
            self._soon(self._beds.pass_on, ear)
        self._soon(self._beds.leave, ear)

    async def hear(self, ear: RedisEar) -> Line | None:
        """A line of the ear's own, on its own loop, from where it can be called now."""
        line, scripts = self._line, self._scripts
        if line is None or scripts is None:
            return None
        channel = scripts.channel(f"{self.process}.{ear.number}")
        try:
            async with asyncio.timeout(PARTING):
                return await open_ear(self._address, line.host, channel, ear.called)
        except (OSError, Refused) as error:
            log.debug("dispatch.register_failed", error=str(error))
            return None

    async def close(self) -> None:
        """Make the last calls, and let go."""
        with self._guard:
            self._closing = True
            thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        leaving = asyncio.run_coroutine_threadsafe(self._leave(), loop)
        with suppress(Exception):
            await asyncio.wait_for(asyncio.wrap_future(leaving), 2 * PARTING)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join, FIND_OUT)

    def _soon(self, act: Callable[..., None], *given: object) -> bool:
        """Act on the board's loop, in the order asked. False if it is gone."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(act, *given)
                return True
        except RuntimeError:
            pass  # it was closed
        return False

    # On the board's own loop

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        keeping = loop.create_task(self._keep())
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(end({keeping, *asyncio.all_tasks(loop)}))
            if self._line is not None:
                self._line.drop(ConnectionError("closed"))
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    async def _keep(self) -> None:
        """Connect, serve until the connection breaks, and again."""
        turn, pause, told = 0, _FIRST_PAUSE, False
        while True:
            try:
                line, scripts = await self._connect(turn)
                if told:
                    log.info("dispatch.back", mode="redis", address=str(self._address))
                told = False
                self._change(line, scripts)
                await self._serve_once(line, scripts)
                pause = _FIRST_PAUSE  # not before: who refuses at once must not be asked at once
                while True:
                    await self._serve_once(line, scripts)
            except Exception as error:  # noqa: BLE001 - whatever it is, it costs latency only
                if not told:
                    told = True
                    log.warning("dispatch.lost", error=self._story(error))
                if self._line is not None:
                    self._line.drop(error)
                self._change(None, None)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            turn, pause = turn + 1, min(pause * 2, _LONGEST_PAUSE)

    def _story(self, error: Exception) -> str:
        return (
            f"no wake-ups through Redis at {self._address}: {str(error) or type(error).__name__}; "
            "by the store's own way, or polling, until it is back"
        )

    async def _connect(self, turn: int) -> tuple[Line, Scripts]:
        if self._scripts is None:
            self._scripts = Scripts(await self._ask_name())
        scripts = self._scripts
        async with asyncio.timeout(FIND_OUT):
            line = await open_line(self._address, scripts.tag, turn=turn, heard=self._beds.heard)
            try:
                line.tell("SUBSCRIBE", scripts.channel(self.process))
                await asyncio.gather(*scripts.load(line))
                await asyncio.gather(*scripts.try_out(line, self.process))
            except BaseException as error:
                line.drop(ConnectionError(str(error)))
                raise
        return line, scripts

    async def _ask_name(self) -> str:
        try:
            return await self._store()
        except Exception as error:
            raise ConnectionError(f"the store does not tell its name: {error}") from error

    def _change(self, line: Line | None, scripts: Scripts | None) -> None:
        """The mode is another: everybody looks, and waits and calls in the new way."""
        if self._known.done() and line is None and self._line is None:
            return
        self._line = line
        self._calls.use(line, scripts)
        self._beds.use(line, scripts)
        if not self._known.done():
            self._known.set_result(None)

    def _plan(self, queues: Mapping[str, int]) -> None:
        loop = asyncio.get_running_loop()
        for pause in LATER:
            loop.call_later(pause, self.call, queues)

    async def _leave(self) -> None:
        await self._calls.finish(PARTING)
        if self._line is not None:
            await self._line.rest()
        if self._resting is not None:
            await asyncio.wait({self._resting}, timeout=PARTING)

    async def _serve_once(self, line: Line, scripts: Scripts) -> None:
        await asyncio.wait({line.lost}, timeout=BEAT)
        if line.lost.done():
            raise line.lost.result()
        await self._beds.beat(line, scripts)
        if self._resting is None or self._resting.done():
            self._resting = asyncio.ensure_future(self._let_others_rest())

    async def _let_others_rest(self) -> None:
        try:
            await self._rest()
        except Exception as error:  # noqa: BLE001 - then it costs what it costs
            log.debug("dispatch.rest_failed", error=str(error))
