"""Ends what is open with a token once that is revoked or has expired: long polls, bodies that are
still being sent, event streams. A store is asked for the tokens of such requests alone, and a few
times a second however many there are, so that a revocation by any process is noticed in time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.errors import HoldfastError
from holdfast.server.problems import Ended

LOOK_EVERY: Final = 0.4

Good = Callable[[Collection[str]], Awaitable[Collection[str]]]


class Revoking:
    """The requests under way in this process."""

    def __init__(self, good: Good) -> None:
        self._good = good
        self._open: dict[asyncio.Task[None], tuple[str, float]] = {}
        self._ended: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None

    async def run(
        self, token_id: str, app: ASGIApp, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request while its token is good; `Ended` if it no longer is."""
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = (token_id, time.monotonic())
        if self._timer is None:
            self._look_later()
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            raise Ended from None
        finally:
            del self._open[task]
            if task in self._ended:
                self._ended.discard(task)
                task.uncancel()

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if self._open:
            self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        old = time.monotonic() - LOOK_EVERY
        asked = {token_id for token_id, since in self._open.values() if since <= old}
        try:
            bad = asked - set(await self._good(asked)) if asked else set()
        except HoldfastError:
            bad = set()  # a store that is away ends nothing
        finally:
            self._look_later()
        for task in [task for task, (token_id, _) in self._open.items() if token_id in bad]:
            if task not in self._ended:
                self._ended.add(task)
                task.cancel()
