"""How a worker lives through a store that does not answer: wait, say so once a second, go on."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.errors import StoreRefused, StoreUnavailable
from holdfast.logs import EventLog

log = EventLog("holdfast.worker")

T = TypeVar("T")


class Outage:
    """The state of one kind of call to the store: how long to wait, and what to log.

    Waits grow from 0.1 s to 2 s, jittered, so that many workers do not come back as one.
    """

    FIRST = 0.1
    LAST = 2.0
    _last_line = 0.0  # shared by all: the store is away once, not once per kind of call

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._wait = 0.0
        self._since: float | None = None

    def delay(self, error: BaseException) -> float:
        """The call failed: note it, and answer how many seconds to wait before the next."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        self._say(error, now)
        self._wait = min(self.LAST, self._wait * 2 or self.FIRST)
        return self._wait * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret

    def over(self) -> None:
        """The call worked."""
        if self._since is not None:
            seconds = round(time.monotonic() - self._since, 3)
            log.info("store.back", doing=self._doing, away_seconds=seconds)
            self._since = None
            self._wait = 0.0

    async def outlast(self, call: Callable[[], Awaitable[T]], *, or_refused: bool = False) -> T:
        """Make this call until the store answers. With `or_refused`, one that does not let us in is
        not waited for.
        """
        while True:
            try:
                answer = await call()
            except StoreUnavailable as error:
                if or_refused and isinstance(error, StoreRefused):
                    raise
                await asyncio.sleep(self.delay(error))
            else:
                self.over()
                return answer

    def _say(self, error: BaseException, now: float) -> None:
        if now - Outage._last_line >= 1.0:
            Outage._last_line = now
            log.warning("store.lost", doing=self._doing, error=str(error))
