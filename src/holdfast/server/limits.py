"""Middleware: no request takes more than its share, and none is read to the end to find that out.

- **Size.** A body that says it is too large is refused before a byte of it is read; one that does
  not say so, as soon as it is. What is left of it is thrown away as it comes, never kept.
- **Time.** A body has `request_timeout` seconds to arrive. A stream of lines may take as long as it
  likes, as long as it never pauses for that long.
- **Rate.** A token gets `rate_limit` requests a second, with a burst of one second's worth. One
  that is bound to a rate of its own gets that many in any such stretch of time, tasks of a bulk
  submit counted one by one. Both are counted by each server process for itself.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.core.token import RateLimit, Token
from holdfast.server.access import TASKS, TOKEN
from holdfast.server.problems import Gone, Refused
from holdfast.settings import Settings

LINES: Final = b"application/x-ndjson"
CLOSE: Final = {"Connection": "close"}
ABSURD: Final = 64
"""A body this many times larger than allowed is not even drained: the connection is closed."""
MOST_BUCKETS: Final = 10_000


class Limits:
    """Refuses what is too large (413), too slow (408) or too often (429)."""

    def __init__(self, app: ASGIApp, settings: Settings, windows: Windows) -> None:
        self._app = app
        self._windows = windows
        self._largest = settings.max_body
        self._patience = settings.request_timeout
        self._rate = Rate(settings.rate_limit) if settings.rate_limit > 0 else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            token = scope.get(TOKEN)
            if self._rate is not None and token is not None:
                self._rate.take(token)
            if token is not None:
                self._windows.take(token)
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


class Rate:
    """A bucket for each token that fills with `rate` requests a second, up to a second's worth."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, token: Token) -> None:
        """Take one request out of the token's bucket; `Refused` says when the next is there."""
        now = time.monotonic()
        level, at = self._buckets.get(token.id, (self._most, now))
        level = min(self._most, level + (now - at) * self._rate)
        if level < 1:
            wait = math.ceil((1 - level) / self._rate)
            raise Refused(
                429,
                "rate_limited",
                f"this token may send {self._rate:g} requests a second; try again in {wait} s",
                headers={"Retry-After": str(wait)},
            )
        if len(self._buckets) >= MOST_BUCKETS:
            self._buckets.clear()
        self._buckets[token.id] = (level - 1, now)


class Windows:
    """What tokens that are bound to a rate did in the last stretch of time, in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def take(self, token: Token, number: int = 1) -> None:
        """Count so many requests, all or none; `Refused` says when there is room for them."""
        limit = token.bounds.rate
        if limit is None or not number:
            return
        window = self._windows.setdefault(token.id, _Window())
        wait = window.take(number, limit, self._clock())
        if wait > 0:
            raise Refused(
                429,
                "rate_limited",
                f"this token is bound to {limit} requests, each submitted task counted; try again "
                f"in {math.ceil(wait)} s",
                headers={"Retry-After": str(math.ceil(wait))},
            )


class _Window:
    """The requests of one token that are not long enough ago."""

    def __init__(self) -> None:
        self._done: deque[tuple[float, int]] = deque()
        self._used = 0

    def take(self, number: int, limit: RateLimit, now: float) -> float:
        """Count them, if there is room; else how many seconds until there is."""
        while self._done and self._done[0][0] <= now - limit.seconds:
            self._used -= self._done.popleft()[1]
        missing = self._used + number - limit.requests
        if missing <= 0:
            self._done.append((now, number))
            self._used += number
            return 0.0
        for at, count in self._done:
            missing -= count
            if missing <= 0:
                return at + limit.seconds - now
        return float(limit.seconds)


def too_large(limit: int, *, closing: bool) -> Refused:
    """The refusal of a body of more than `limit` bytes."""
    return Refused(
        413,
        "body_too_large",
        f"the body is larger than {limit:,} bytes (`max_body`). Send fewer tasks at a time, or a "
        "stream of lines (application/x-ndjson)",
        headers=CLOSE if closing else {},
    )
