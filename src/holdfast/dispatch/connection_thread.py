"""Keeps the process's one connection for wake-ups, on a thread and an event loop of its own.

Neither a worker's busy loop nor a sync caller without any can hold it up. It connects, serves until
the connection breaks, and connects again, after a pause that grows to two seconds. The loss is told
once, and so is that it is back.
"""

from __future__ import annotations

import asyncio
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeVar

from holdfast.asyncio_tools.cancel import end
from holdfast.dispatch.calls import Calls
from holdfast.errors import ConfigError
from holdfast.logs import EventLog

log = EventLog(__name__)

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0
GOODBYE: Final = 0.5
"""Seconds for the last calls."""


class HintConnection(Protocol):
    """Open until it is `lost`, which says why."""

    @property
    def lost(self) -> asyncio.Future[Exception]: ...

    def drop(self, why: Exception) -> None:
        """Let go of it at once."""
        ...


C = TypeVar("C", bound=HintConnection)


class ConnectionThread(ABC, Generic[C]):
    """Used once: after `close` it does not start again.

    Args:
        every: Seconds between two `_look_after`.
        within: Seconds to find out whether there can be a connection at all.
        calls: What is to be called over it.

    Attributes:
        connection: None while there is none.
    """

    def __init__(self, *, every: float, within: float, calls: Calls) -> None:
        self._every = every
        self._within = within
        self._calls = calls
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._stopping = asyncio.Event()
        self._known: Future[None] = Future()
        self.connection: C | None = None

    # From any thread

    @property
    def is_away(self) -> bool:
        """Whether there is known to be no connection."""
        return self.connection is None and self._known.done()

    def start(self) -> None:
        """Begin to connect, unless that was begun before."""
        with self._guard:
            if self._thread is None and not self._is_closing:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._work, args=(self._loop,), name="holdfast-dispatch", daemon=True
                )
                self._thread.start()

    async def is_up(self) -> bool:
        """Whether there is a connection; waits for the first answer to that."""
        if not self._known.done():
            self.start()
            known = asyncio.shield(asyncio.wrap_future(self._known))
            with suppress(TimeoutError):
                await asyncio.wait_for(known, self._within)
        return self.connection is not None

    def call(self, queues: Mapping[str, int]) -> None:
        """Wake so many sleepers of these queues, soon. Never blocks, never raises."""
        if self._calls.ask_for(queues):
            self.start()
            self._soon(self._calls.make)

    async def close(self) -> None:
        """Make the last calls, and let go."""
        with self._guard:
            self._is_closing = True
            thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        leaving = self._run(self._leave())
        if leaving is not None:  # it may be cancelled: the thread may be ending by itself
            await asyncio.wait({asyncio.wrap_future(leaving)}, timeout=3 * GOODBYE)
        self._soon(self._stopping.set)
        await asyncio.to_thread(thread.join, self._within)

    def _soon(self, act: Callable[..., object], *given: object) -> None:
        """Act on the thread's loop, in the order asked; not at all if it is gone."""
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(act, *given)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Future[Any] | None:
        """The same for what takes time; None if the loop is gone."""
        try:
            if self._loop is not None:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            pass  # it was closed this moment
        work.close()
        return None

    # On its own loop; what each kind of connection does

    @abstractmethod
    async def _connect(self, attempt: int) -> C:
        """A connection, ready for use. ConfigError: there will never be one."""

    @abstractmethod
    async def _look_after(self, connection: C) -> None:
        """What is to be done every now and then while it is open."""

    @abstractmethod
    def _changed(self, connection: C | None) -> None:
        """There is a new connection, or none: have everybody wait and call in the new way, and look
        once, because nobody knows what was missed.
        """

    @abstractmethod
    def _how(self) -> Mapping[str, str]:
        """How wake-ups travel again, for the log."""

    @abstractmethod
    def _story(self, error: str) -> str:
        """What it means that the connection was lost."""

    async def _leave(self) -> None:
        """Make the last calls."""
        await self._calls.finish(GOODBYE)

    # On its own loop; what is the same for all

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._live())
        finally:
            loop.close()

    async def _live(self) -> None:
        """Until it is told to stop, however often; then nothing of it is left, nor of what other
        threads began meanwhile.
        """
        keeping = asyncio.create_task(self._keep())
        await self._stopping.wait()
        await end({keeping})
        self._drop(ConnectionError("closed"))
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await end(others)
        await asyncio.sleep(0)

    def _end(self) -> None:
        """Stop for good, from its own loop."""
        self._is_closing = True
        self._stopping.set()

    async def _keep(self) -> None:
        attempt, pause, told = 0, FIRST_PAUSE, False
        while True:
            try:
                connection = await self._connect(attempt)
                if told:
                    log.info("dispatch.back", **self._how())
                told = False
                self._change(connection)
                await self._serve_once(connection)
                pause = FIRST_PAUSE  # not before: who refuses at once must not be asked at once
                while True:
                    await self._serve_once(connection)
            except ConfigError as error:
                log.warning("dispatch.unavailable", error=str(error))
                self._change(None)
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, it costs latency only
                if not told:
                    told = True
                    said = self._story(str(error) or type(error).__name__)
                    log.warning("dispatch.lost", error=said)
                self._drop(error)
                self._change(None)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            attempt, pause = attempt + 1, min(pause * 2, LONGEST_PAUSE)

    async def _serve_once(self, connection: C) -> None:
        await asyncio.wait({connection.lost}, timeout=self._every)
        if connection.lost.done():
            raise connection.lost.result()
        await self._look_after(connection)

    def _drop(self, why: Exception) -> None:
        if self.connection is not None:
            self.connection.drop(why)

    def _change(self, connection: C | None) -> None:
        if self._known.done() and connection is None and self.connection is None:
            return
        self.connection = connection
        self._changed(connection)
        if not self._known.done():
            self._known.set_result(None)
