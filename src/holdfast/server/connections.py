"""Connections that must get to the point: a request's head has a size and a time limit, and so has
what is left of a body when the answer is out.

uvicorn limits none of them, so idle or endlessly dripping sockets would stay for ever and fill its
memory. A body that somebody still reads is for the application's own limits.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 20.0
"""From the connection, or the first byte of a further request, until its head is complete."""
HEAD_BYTES = 64 * 1024
REST_SECONDS = 20.0
"""From the answer until the end of a body that was not waited for; it is thrown away."""

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class Connection(HttpToolsProtocol):
    """A connection of uvicorn's, with those limits."""

    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
            # A body may come in the same piece; what is far over the limit is no head at all.
            if self._head_bytes > HEAD_BYTES and b"\r\n\r\n" not in data[: HEAD_BYTES + 4]:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        if self._deadline is None:
            self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self._in_head and self.cycle.response_complete:  # and not one that stood behind it
            self._wait(REST_SECONDS)
        super().on_response_complete()

    def _expect_head(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._wait(HEAD_SECONDS)

    def _wait(self, seconds: float) -> None:
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
