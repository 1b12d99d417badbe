"""Calls to sleepers, gathered: one is under way at a time, what is asked for meanwhile goes with
the next. So a single one leaves at once, and a thousand a second become few.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from holdfast.dispatch.redis.line import Line
from holdfast.dispatch.redis.resp import Refused, Reply
from holdfast.dispatch.redis.scripts import Scripts

TOGETHER: Final = 0.002
"""Seconds between two calls, however many are asked for: who is called takes all that is there."""
IN_VAIN: Final = 0.005
"""The same after a call that found nobody asleep: all are busy, calls would only cost."""


class Calls:
    """What is to be called. `ask_for`, `make_here` from any thread, all else on the board's loop.

    Args:
        otherwise: Calls without Redis. What cannot be said through Redis goes there.
    """

    def __init__(self, otherwise: Callable[[Mapping[str, int]], None]) -> None:
        self._otherwise = otherwise
        self._guard = threading.Lock()
        self._wanted: dict[str, int] = {}
        self._is_busy = False
        self._not_before = 0.0
        self._line: Line | None = None
        self._scripts: Scripts | None = None
        self._is_known = False

    def ask_for(self, queues: Mapping[str, int]) -> bool:
        """Note so many calls for each queue. True if somebody must `make` them."""
        with self._guard:
            for queue, count in queues.items():
                self._wanted[queue] = self._wanted.get(queue, 0) + count
            is_first, self._is_busy = not self._is_busy, True
            return is_first

    def use(self, line: Line | None, scripts: Scripts | None) -> None:
        """From now on call over this line; None: otherwise. Until the first time, wait for it."""
        self._line, self._scripts = line, scripts
        if not self._is_known:
            self._is_known = True
            self.make()

    async def finish(self, within: float) -> None:
        """Have all calls made: otherwise, if they cannot be made in so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self._is_busy:  # noqa: ASYNC110 - at the very end, for an instant
                    await asyncio.sleep(0.002)
        if self._is_busy:
            self._otherwise(self._take())

    def make_here(self) -> bool:
        """Make the calls that are asked for, on this thread. False if it must be the board's."""
        line, scripts = self._line, self._scripts
        if line is None or scripts is None or time.monotonic() < self._not_before:
            return False
        queues = self._take()
        if scripts.wake_from(line, queues, partial(self._made, line, queues)):
            return True
        self.ask_for(queues)
        return False

    def make(self) -> None:
        """Make the calls that are asked for, and those asked for until these are made."""
        if not self._is_known:
            return
        early = self._not_before - time.monotonic()
        if early > 0 and self._line is not None:
            asyncio.get_running_loop().call_later(early, self.make)
            return
        while queues := self._take():
            if self._line is not None and self._scripts is not None:
                asked = self._scripts.wake(self._line, queues)
                asked.add_done_callback(partial(self._made, self._line, queues))
                return
            self._otherwise(queues)

    def _made(self, line: Line, queues: Mapping[str, int], asked: asyncio.Future[Reply]) -> None:
        error = asked.exception()
        if error is None:
            self._not_before = time.monotonic() + (TOGETHER if asked.result() else IN_VAIN)
        elif isinstance(error, Refused) and error.code == "NOSCRIPT" and self._scripts:
            self._scripts.load(line)
            self.ask_for(queues)
        else:
            line.drop(ConnectionError(str(error)))
            self._otherwise(queues)
        if not self._is_done():
            self.make()

    def _is_done(self) -> bool:
        with self._guard:
            self._is_busy = bool(self._wanted)
            return not self._is_busy

    def _take(self) -> Mapping[str, int]:
        with self._guard:
            queues, self._wanted = self._wanted, {}
            self._is_busy = bool(queues)
            return queues
