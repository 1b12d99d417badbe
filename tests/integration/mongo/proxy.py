"""The proxy of `tests.kit.servers.proxy`, for MongoDB's protocol.

A message begins with its length in four bytes. Every message of a client is a request and has one
answer, as long as nobody asks for a stream of them; what it asks for stands in it by name.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.kit.servers.proxy import Proxy
from tests.kit.servers.wire import Answered, Asked, Message


class _Asked(Asked):
    def feed(self, data: bytes) -> Iterator[Message]:
        for message in _messages(self, data):
            self.sql = message.decode("latin-1")
            yield Message(b"", message)

    def ends_turn(self, message: Message) -> bool:
        return True


class _Answered(Answered):
    def turns_ended_by(self, data: bytes) -> int:
        return len(list(_messages(self, data)))


def _messages(side: Asked | Answered, data: bytes) -> Iterator[bytes]:
    side._buffer += data
    while len(side._buffer) >= 4:
        size = struct.unpack_from("<I", side._buffer)[0]
        if len(side._buffer) < size:
            return
        message, side._buffer = side._buffer[:size], side._buffer[size:]
        yield message


class MongoProxy(Proxy):
    """Rules and ambushes are given the text of each request as it is on the wire."""

    asked = _Asked
    answered = _Answered
