"""Middleware: no request takes more than its share, and none is read to the end to find that out.

- **Size.** A body that says it is too large is refused before a byte of it is read; one that does
  not say so, as soon as it is. What is left of it is thrown away as it comes, never kept.
- **Time.** A body has `request_timeout` seconds to arrive. A stream of lines may take as long as it
  likes, as long as it never pauses for that long.
- **Rate.** A token gets `rate_limit` requests in any second. One that is bound to a rate of its own
  gets that many in any such stretch of time, tasks of a bulk submit counted one by one. Both are
  counted by each server process for itself.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.core.token import Token
from holdfast.server.access import TASKS, TOKEN
from holdfast.server.problems import Gone, Refused
from holdfast.settings import Settings

LINES: Final = b"application/x-ndjson"
CLOSE: Final = {"Connection": "close"}
ABSURD: Final = 64
"""A body this many times larger than allowed is not even drained: the connection is closed."""


class Limits:
    """Refuses what is too large (413), too slow (408) or too often (429)."""

    def __init__(self, app: ASGIApp, settings: Settings, windows: Windows) -> None:
        self._app = app
        self._windows = windows
        self._largest = settings.max_body
        self._patience = settings.request_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if TOKEN in scope:
                self._windows.ask(scope[TOKEN])
            receive = self._metered(scope, receive)
        await self._app(scope, receive, send)

    def _metered(self, scope: Scope, receive: Receive) -> Receive:
        length, kind = b"", b""
        for name, value in scope["headers"]:
            if name == b"content-length":
                length = value
            elif name == b"content-type":
                kind = value
        if scope["path"] == TASKS and kind.partition(b";")[0].strip().lower() == LINES:
            return _Meter(receive, math.inf, self._patience, renews=True)
        declared = int(length) if length.isdigit() else 0
        if declared > self._largest:
            raise too_large(self._largest, closing=declared > ABSURD * self._largest)
        return _Meter(receive, self._largest, self._patience, renews=False)


class _Meter:
    """`receive` with a limit on what comes through, until the body is complete."""

    def __init__(self, receive: Receive, largest: float, patience: float, *, renews: bool) -> None:
        self._receive = receive
        self._left = largest
        self._largest = largest
        self._patience = patience
        self._renews = renews
        self._deadline: float | None = None
        self._is_complete = False

    async def __call__(self) -> Message:
        if self._is_complete:  # what follows is a wait for the client to leave, as long as it takes
            return await self._receive()
        message = await self._next()
        if message["type"] == "http.disconnect":
            raise Gone
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise too_large(int(self._largest), closing=True)
        self._is_complete = not message.get("more_body", False)
        return message

    async def _next(self) -> Message:
        if self._deadline is None or self._renews:
            self._deadline = asyncio.get_running_loop().time() + self._patience
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._receive()
        except TimeoutError:
            raise Refused(
                408,
                "request_timeout",
                f"the request's body did not arrive within {self._patience:g} s",
                headers=CLOSE,
            ) from None


class Windows:
    """What tokens did in the last stretch of time, in this process: each may send `rate` requests a
    second, if that is not 0, and one that is bound to a rate of its own no more than that.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, rate: float = 0.0) -> None:
        self._clock = clock
        self._rate = rate
        self._of_all: dict[str, _Window] = {}
        self._of_bound: dict[str, _Window] = {}

    def ask(self, token: Token) -> None:
        """Count one request; `Refused` says when there is room for it."""
        if self._rate > 0:
            burst = max(1, int(self._rate))
            window = self._of_all.setdefault(token.id, _Window())
            wait = window.take(1, burst, burst / self._rate, self._clock())
            _refuse_early(wait, f"this token may send {self._rate:g} requests a second")
        self.take(token)

    def take(self, token: Token, number: int = 1) -> None:
        """Count so many of a bound token, all or none; `Refused` says when there is room."""
        limit = token.bounds.rate
        if limit is None or not number:
            return
        window = self._of_bound.setdefault(token.id, _Window())
        wait = window.take(number, limit.requests, limit.seconds, self._clock())
        _refuse_early(wait, f"this token is bound to {limit} requests, each submitted task counted")


def _refuse_early(wait: float, says: str) -> None:
    if wait > 0:
        seconds = math.ceil(wait)
        raise Refused(
            429,
            "rate_limited",
            f"{says}; try again in {seconds} s",
            headers={"Retry-After": str(seconds)},
        )


class _Window:
    """The requests of one token that are not long enough ago."""

    def __init__(self) -> None:
        self._done: deque[tuple[float, int]] = deque()
        self._used = 0

    def take(self, number: int, most: int, seconds: float, now: float) -> float:
        """Count them, if there is room; else how many seconds until there is."""
        while self._done and self._done[0][0] <= now - seconds:
            self._used -= self._done.popleft()[1]
        missing = self._used + number - most
        if missing <= 0:
            self._done.append((now, number))
            self._used += number
            return 0.0
        for at, count in self._done:
            missing -= count
            if missing <= 0:
                return at + seconds - now
        return seconds


def too_large(limit: int, *, closing: bool) -> Refused:
    """The refusal of a body of more than `limit` bytes."""
    return Refused(
        413,
        "body_too_large",
        f"the body is larger than {limit:,} bytes (`max_body`). Send fewer tasks at a time, or a "
        "stream of lines (application/x-ndjson)",
        headers=CLOSE if closing else {},
    )
