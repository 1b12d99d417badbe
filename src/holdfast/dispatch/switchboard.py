"""The process's one connection for wake-ups, on a thread and an event loop of its own.

Neither a worker's busy loop nor a sync caller without any can hold it up. All methods may be called
from any thread; what talks to the server runs on the board's loop, one statement at a time.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Collection, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Protocol

from holdfast.dispatch.line import PATIENCE, Line
from holdfast.ending import end
from holdfast.errors import ConfigError
from holdfast.logs import EventLog

log = EventLog(__name__)

TOGETHER: Final = 0.003
"""Seconds between two calls to the server, however many wake-ups are asked for."""
IN_VAIN: Final = 0.01
"""The same after a call that found nobody asleep: then all are busy, and calls would only cost."""
STANDING: Final = 30.0
"""Seconds that a registration lasts. It is prolonged well before; a dead process's runs out."""
RENEW: Final = 10.0
BUSY: Final = 0.25
"""A process in which nobody has slept for so long is not called any more."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class Sleeper(Protocol):
    """Somebody who may be woken."""

    queues: Collection[str] | None

    def hears(self, queues: Collection[str]) -> bool: ...

    def ring(self) -> None: ...


class Switchboard:
    """Keeps the connection, registers this process as asleep, calls others, hears calls."""

    def __init__(self, dsn: str, schema: str, process: str) -> None:
        self._dsn = dsn
        self._schema = schema
        self._process = process
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._mode: str | None = None
        self._mode_known: Future[None] = Future()
        self._closing = False
        self._called: set[str] = set()
        self._is_calling = False
        self._next_call = 0.0
        self._registration = 0
        self._registered_for: frozenset[str] | None = frozenset()
        self._registered_at = 0.0
        self._is_registered = False
        self._naps = 0
        self._last_nap = 0.0
        self._one_call = asyncio.Lock()
        self.ears: tuple[Sleeper, ...] = ()

    # From any thread

    def start(self) -> None:
        """Begin to connect, unless that was begun before."""
        with self._guard:
            if self._thread is None and not self._closing:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._work, args=(self._loop,), name="holdfast-dispatch", daemon=True
                )
                self._thread.start()

    @property
    def has_started(self) -> bool:
        return self._thread is not None

    async def mode(self) -> str:
        """`listen` or `poll`."""
        self.start()
        with suppress(TimeoutError):
            await asyncio.wait_for(
                asyncio.shield(asyncio.wrap_future(self._mode_known)), 2 * PATIENCE
            )
        return self._mode or "poll"

    def call(self, queues: Collection[str]) -> None:
        """Wake other processes that sleep for these queues, soon. Never blocks, never raises."""
        if self._is_calling and self._called.issuperset(queues):
            return
        with self._guard:
            self._called.update(queues)
            is_first, self._is_calling = not self._is_calling, True
        if is_first:
            self.start()
            self._later(self._call_soon())

    def take_turn(self) -> bool:
        """Whether nobody has called for a while; then whoever asks is the one to call now."""
        now = time.monotonic()
        with self._guard:
            if self._is_calling or now < self._next_call:
                return False
            self._next_call = now + TOGETHER
            return True

    def is_away(self, registration: int) -> bool:
        """Whether somebody who saw that registration must register anew before sleeping."""
        is_current = self._is_registered and registration == self._registration
        return self._mode == "listen" and not is_current

    async def register(self, *, within: float) -> int | None:
        """Have this process called from now on; None if that cannot be had."""
        self.begin_nap()
        asked = self._later(self._register())
        try:
            if asked is None:
                return None
            return await asyncio.wait_for(asyncio.wrap_future(asked), within)
        except Exception as error:  # noqa: BLE001 - then this process polls
            log.debug("dispatch.register_failed", error=str(error))
            return None
        finally:
            self.end_nap()

    def begin_nap(self) -> None:
        """Somebody here goes to sleep."""
        with self._guard:
            self._naps += 1

    def end_nap(self) -> None:
        with self._guard:
            self._naps -= 1
            self._last_nap = time.monotonic()

    async def close(self) -> None:
        """Make the last calls, take this process off the list, and let go."""
        with self._guard:
            self._closing = True
            thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        leaving = asyncio.run_coroutine_threadsafe(self._leave(), loop)
        with suppress(Exception):
            await asyncio.wait_for(asyncio.wrap_future(leaving), PATIENCE)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join, PATIENCE)

    def _later(self, work: Coroutine[Any, Any, Any]) -> Future[Any] | None:
        loop = self._loop
        if loop is None or loop.is_closed():
            work.close()
            return None
        return asyncio.run_coroutine_threadsafe(work, loop)

    # On the board's own loop

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        self._line = Line(self._dsn, self._schema, self._heard)
        keeping = loop.create_task(self._keep())
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(end({keeping, *asyncio.all_tasks(loop)}))
            self._line.drop()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    async def _keep(self) -> None:
        """Connect, serve until the connection breaks, and again."""
        pause = _FIRST_PAUSE
        told = False
        while True:
            try:
                await self._line.open()
                self._know("listen" if await self._line.can_hear() else "poll")
                if told:
                    log.info("dispatch.back", mode=self._mode)
                pause, told = _FIRST_PAUSE, False
                self._wake_all()
                await self._serve()
            except ConfigError as error:
                log.warning("dispatch.unavailable", error=str(error))
                self._know("poll")
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, it costs latency only
                if not told:
                    told = True
                    said = f"{error}; workers poll until it is back"
                    log.warning("dispatch.lost", error=said)
            self._is_registered = False
            self._line.drop()
            self._know("poll")
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _know(self, mode: str) -> None:
        self._mode = mode
        if not self._mode_known.done():
            self._mode_known.set_result(None)

    async def _serve(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._line.broken.wait(), BUSY)
                raise ConnectionError("the connection was closed by the server")
            if not self._is_registered:
                continue
            now = time.monotonic()
            if self._naps == 0 and now - self._last_nap > BUSY:
                self._is_registered = False
                await self._line.ask("awake", self._process)
            elif now - self._registered_at > RENEW:
                await self._sign_up()

    async def _register(self) -> int | None:
        if self._mode != "listen" or not self._line.is_open:
            return None
        if not self._is_registered or self._registered_for != self._wanted():
            await self._sign_up()
            self._registration += 1
        return self._registration

    async def _sign_up(self) -> None:
        wanted = self._wanted()
        queues = None if wanted is None else sorted(wanted)
        await self._line.ask("sleep", self._process, queues, STANDING)
        self._registered_for, self._registered_at = wanted, time.monotonic()
        self._is_registered = True

    def _wanted(self) -> frozenset[str] | None:
        """The queues that anybody here listens to; None: all."""
        wanted: set[str] = set()
        for ear in self.ears:
            if ear.queues is None:
                return None
            wanted.update(ear.queues)
        return frozenset(wanted)

    async def _call_soon(self) -> None:
        await asyncio.sleep(self._next_call - time.monotonic())
        await self._call_now()

    async def _call_now(self) -> None:
        async with self._one_call:
            try:
                await asyncio.wait_for(self._line.opened.wait(), 1.0)
                queues = self._take_called()
                if queues:
                    self._next_call = time.monotonic() + TOGETHER
                    if not await self._line.ask("wake", queues):
                        self._next_call += IN_VAIN - TOGETHER
            except Exception as error:  # noqa: BLE001 - a wake-up is a hint
                log.debug("dispatch.call_failed", error=str(error))
                self._take_called()

    def _take_called(self) -> list[str]:
        with self._guard:
            queues, self._called, self._is_calling = sorted(self._called), set(), False
            return queues

    async def _leave(self) -> None:
        with suppress(TimeoutError):
            if self._is_calling or self._one_call.locked():
                await asyncio.wait_for(self._call_now(), 0.5)
        if self._is_registered and self._line.is_open:
            await self._line.ask("awake", self._process)

    def _heard(self, queue: str) -> None:
        for ear in self.ears:
            if ear.hears((queue,)):
                ear.ring()

    def _wake_all(self) -> None:
        for ear in self.ears:
            ear.ring()
