"""Just enough of PostgreSQL's protocol to know what is asked, and where an answer ends.

A message is one letter, four bytes of length (which count themselves), and content. Only the first
ones of a connection have no letter: a request for encryption, answered by a single byte, and the
startup itself. A client's turn ends with Sync or a simple Query; the server's turn, and with it the
commit of what was asked, with ReadyForQuery.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

ENCRYPTION_REQUESTS = {80877103, 80877104}
STARTUP = b"\0"
"""Stands in for the letter that a startup message lacks."""


class Message(NamedTuple):
    letter: bytes
    data: bytes

    @property
    def content(self) -> bytes:
        return self.data[5:]


class Asked:
    """What a client says: cut into messages, with the SQL text of its current request."""

    def __init__(self) -> None:
        self.sql = ""
        self.awaits_byte = False
        self._buffer = b""
        self._started = False
        self._prepared: dict[bytes, str] = {}

    def feed(self, data: bytes) -> Iterator[Message]:
        self._buffer += data
        while message := self._next():
            self._understand(message)
            yield message

    def ends_turn(self, message: Message) -> bool:
        return message.letter in (b"S", b"Q")

    def _next(self) -> Message | None:
        head = 1 if self._started else 0
        if len(self._buffer) < head + 4:
            return None
        size = head + struct.unpack_from("!I", self._buffer, head)[0]
        if len(self._buffer) < size:
            return None
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return Message(data[:1] if head else STARTUP, data)

    def _understand(self, message: Message) -> None:
        match message.letter:
            case b"\0":
                code = struct.unpack_from("!I", message.data, 4)[0]
                self.awaits_byte = code in ENCRYPTION_REQUESTS
                self._started = not self.awaits_byte
            case b"Q":
                self.sql = message.content.rstrip(b"\0").decode(errors="replace")
            case b"P":
                name, text, _ = message.content.split(b"\0", 2)
                self.sql = self._prepared[name] = text.decode(errors="replace")
            case b"B":
                _, name, _ = message.content.split(b"\0", 2)
                self.sql = self._prepared.get(name, "")


class Answered:
    """What a server says; tells when a turn is over."""

    def __init__(self) -> None:
        self._buffer = b""

    def turns_ended_by(self, data: bytes) -> int:
        """How many turns these bytes end."""
        self._buffer += data
        ended = 0
        while len(self._buffer) >= 5:
            size = 1 + struct.unpack_from("!I", self._buffer, 1)[0]
            if len(self._buffer) < size:
                break
            ended += self._buffer[:1] == b"Z"
            self._buffer = self._buffer[size:]
        return ended
