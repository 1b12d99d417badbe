"""Connections that must get to the point, and take what they asked for.

uvicorn limits none of this, so idle, endlessly dripping or deaf sockets would stay for ever and
fill its memory. Here a request's head has a size and a time limit, and so has what is left of a
body when the answer is out; what a body brings beside its bytes (trailers, chunk extensions) has a
size and is thrown away; an answer must be read at some pace; and there are only so many
connections, of which one that waits for its next request makes way for a new one; where all are
busy, a few more may ask how the server is. A body that somebody still reads is for the
application's own limits.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.server.access import methods_of

HEAD_SECONDS = 20.0
"""From the connection, or the first byte of a further request, until its head is complete."""
HEAD_BYTES = 64 * 1024
"""Of a head, and of whatever else is no body until more of a body comes."""
SLOWEST = 512 * 1024
REST_SECONDS = 20.0
"""Of a body that was not waited for, so many bytes come in this time after the answer, and again,
until it is complete; it is thrown away. Who is slower is cut off."""
WRITE_SECONDS = 20.0
"""An answer that is not taken off the server's hands at once loses as many in this time, or the
connection is cut."""
UNREAD_BYTES = 256 * 1024 * 1024
"""All such answers together; beyond it the connection with the largest is cut."""
SPARE = 16
"""Connections beyond the most there may be, for those who ask for the server's health alone."""
MOST_PIPELINED = 64
"""Requests that may wait for the answer to the one before."""

_CLOSING = b"content-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSING
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n" + _CLOSING


class LimitedConnection(HttpToolsProtocol):
    """A connection of uvicorn's, with those limits."""

    most: ClassVar[int] = 1000
    _idle: ClassVar[dict[LimitedConnection, None]] = {}
    """Those without a request, longest first."""
    _deaf: ClassVar[set[LimitedConnection]] = set()
    """Those that have not read what they were sent."""

    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _unread = 0
    _bytes = 0
    _rest = 0
    _in_head = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        over = len(self.connections) - self.most
        if over > 0 and not self._make_room():
            if over > SPARE:
                self._say(_FULL)
                return
            self.app = _only_health(self.app)
        self._idle[self] = None
        self._wait(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        self._idle.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        if self._in_head:
            # A body may come in the same piece; what is far over the limit is no head at all.
            if self._bytes > HEAD_BYTES and b"\r\n\r\n" not in data[: HEAD_BYTES + 4]:
                self._say(_TOO_LARGE)
                return
            if self._deadline is None and not self._is_answering:
                self._wait(HEAD_SECONDS)
        super().data_received(data)
        if self._bytes > HEAD_BYTES and not self._in_head:
            self._close()

    def on_message_begin(self) -> None:
        if self._deadline is None:
            self._wait(HEAD_SECONDS)
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # and not a trailer, which would be one of the headers by now
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._bytes = False, 0
        self._stop_waiting()
        self._idle.pop(self, None)
        super().on_headers_complete()
        if self.parser.should_upgrade():  # which is not done here; the parser reads no further
            self.cycle.keep_alive = False
        if len(self.pipeline) > MOST_PIPELINED:
            raise ValueError("too many requests at once")

    def on_body(self, body: bytes) -> None:
        self._bytes = 0
        self._rest += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._bytes = True, 0
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self._in_head and not self._is_answering:  # and not one that stood behind it
            self._await_rest()
        super().on_response_complete()
        self._watch()
        if not self._is_answering:
            self._idle[self] = None

    def send_400_response(self, msg: str) -> None:
        if self.pipeline or (self._is_answering and self.cycle.response_started):
            self._close()  # it would be taken for the answer to an earlier request
        else:
            super().send_400_response(msg)
            self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deaf.add(self)
        self._watch()
        sizes = {each: each.transport.get_write_buffer_size() for each in self._deaf}
        if sum(sizes.values()) > UNREAD_BYTES:
            max(sizes, key=sizes.__getitem__).transport.abort()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_watching()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    @property
    def _is_answering(self) -> bool:
        is_asked = self.cycle is not None
        return is_asked and not self.cycle.response_complete

    def _make_room(self) -> bool:
        """Let go of the one that has waited longest for a request, and has had its answer."""
        for other in self._idle:
            if not other.transport.get_write_buffer_size():
                other.transport.abort()
                del self._idle[other]
                return True
        return False

    def _say(self, last: bytes) -> None:
        self.transport.write(last)
        self._close()

    def _close(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.close()
            self._watch()

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(seconds, self._close)

    def _await_rest(self) -> None:
        """A client may send all of its body before it reads the answer, and need its time."""
        before = self._rest

        def look() -> None:
            if self._rest - before < SLOWEST:
                self._close()
            else:
                self._await_rest()

        self._stop_waiting()
        self._deadline = self.loop.call_later(REST_SECONDS, look)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _watch(self) -> None:
        """Look later whether what was written is being read."""
        self._unread = self.transport.get_write_buffer_size()
        if self._unread and self._reading is None:
            self._reading = self.loop.call_later(WRITE_SECONDS, self._look)

    def _look(self) -> None:
        self._reading = None
        left = self.transport.get_write_buffer_size()
        # While a further answer is written unhindered, nothing is known of the first.
        is_known = self.flow.write_paused or not self._is_answering
        if is_known and left > max(0, self._unread - SLOWEST):
            self.transport.abort()
        else:
            self._watch()

    def _stop_watching(self) -> None:
        self._deaf.discard(self)
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None


def _only_health(app: Any) -> Any:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        is_open = None in (methods_of(scope["path"]) or {}).values()
        await (app if is_open else service_unavailable)(scope, receive, send)

    return answer


def at_most(most: int) -> type[LimitedConnection]:
    """The connections of one server: so many at once."""
    return type(
        "LimitedConnection", (LimitedConnection,), {"most": most, "_idle": {}, "_deaf": set()}
    )
