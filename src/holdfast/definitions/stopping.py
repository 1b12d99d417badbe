"""How a body learns that it should end, before anything is done to it.

An attempt that ran out of time, was cancelled, or whose worker leaves is *asked* to stop first. A
body that looks is given `stop_grace` to end by itself; only then is it interrupted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

from holdfast.core.duration import Duration, parse_duration
from holdfast.errors import HoldfastError

LOOK_EVERY = 0.05


class Stopping:
    """The request to stop. `await ctx.stopping` in an async body, `ctx.stopping.wait(…)` in others.

    `is_asked` is set by the worker: from its loop, and in a child process by a signal, so nothing
    here takes a lock. `has_looked` says that the body looks at all, `has_seen` that it knows.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self.has_looked = False
        self.has_seen = False
        self._calls: list[Callable[[], None]] = []

    def ask(self) -> None:
        """Ask the body to stop."""
        if not self.is_asked:
            self.is_asked = True
            for call in list(self._calls):
                call()

    def look(self) -> bool:
        """Whether the body should stop; for the body itself."""
        self.has_looked = True
        if self.is_asked:
            self.has_seen = True
        return self.has_seen

    def then(self, call: Callable[[], None]) -> None:
        """Call this when the body is asked; at once if it was. It may be called twice."""
        self._calls.append(call)
        if self.is_asked:
            call()

    def wait(self, timeout: Duration | None = None) -> bool:
        """Block until the attempt should stop, `timeout` at most; whether it should."""
        if asyncio._get_running_loop() is not None:
            raise HoldfastError(
                "this handler is async: write `await ctx.stopping`. `wait()` would hold up the "
                "event loop."
            )
        until = None if timeout is None else time.monotonic() + parse_duration(timeout)
        # Short sleeps, no lock: a planted exception strikes and a signal is heard in between.
        while not self.look():
            rest = LOOK_EVERY if until is None else min(LOOK_EVERY, until - time.monotonic())
            if rest <= 0:
                return False
            time.sleep(rest)
        return True

    def __await__(self) -> Generator[Any, Any, None]:
        return self._asked().__await__()

    async def _asked(self) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            with suppress(RuntimeError):  # its loop is closed: the body has gone
                loop.call_soon_threadsafe(_resolve, waiter)

        self.look()
        self.then(wake)
        try:
            await waiter
        finally:
            self._calls.remove(wake)
        self.look()


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
