"""Redis's protocol, both ways: commands into bytes, bytes into replies (RESP3, and RESP2 in it).

A client of fifty lines instead of a driver's: one connection that is asked four scripts and hears
its calls between the answers. That needs no pool, no retries and no cluster client, and a call
spends a tenth of the time in Python.
"""

from __future__ import annotations

from typing import Final

Reply = bytes | int | float | bool | list["Reply"] | Exception | None

_END: Final = b"\r\n"


class ErrorReply(Exception):
    """The server answered with an error."""

    @property
    def code(self) -> str:
        """Its first word: `NOSCRIPT`, `READONLY`, `MOVED`."""
        return str(self).partition(" ")[0]


class Push(list[Reply]):
    """What the server says unasked."""


def command(*words: str | bytes | int) -> bytes:
    """One command as the server reads it."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


class Reader:
    """Turns what arrives into replies, however it is cut into pieces."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> list[Reply]:
        """The replies that these bytes complete. ValueError if that is not the protocol."""
        self._data += data
        replies: list[Reply] = []
        at = 0
        while (found := _read(self._data, at)) is not None:
            reply, at = found
            replies.append(reply)
        self._data = self._data[at:]
        return replies


def _read(data: bytes, at: int) -> tuple[Reply, int] | None:
    """One reply and where it ends; None if it is not all there yet."""
    end = data.find(_END, at)
    if end < 0:
        return None
    kind, text, after = data[at : at + 1], data[at + 1 : end], end + 2
    match kind:
        case b"+":
            return text, after
        case b"-":
            return ErrorReply(text.decode(errors="replace")), after
        case b":":
            return int(text), after
        case b"_":
            return None, after
        case b"#":
            return text == b"t", after
        case b",":
            return float(text), after
        case b"$" | b"=" | b"!":
            return _read_text(data, kind, int(text), after)
        case b"*" | b"~" | b">" | b"%" | b"|":
            return _read_many(data, kind, int(text), after)
        case _:
            raise ValueError(f"this is no Redis: it says {data[at : at + 40]!r}")


def _read_text(data: bytes, kind: bytes, size: int, at: int) -> tuple[Reply, int] | None:
    if size < 0:
        return None, at
    if len(data) < at + size + 2:
        return None
    text = data[at : at + size]
    reply: Reply = ErrorReply(text.decode(errors="replace")) if kind == b"!" else text
    return reply, at + size + 2


def _read_many(data: bytes, kind: bytes, count: int, at: int) -> tuple[Reply, int] | None:
    if count < 0:
        return None, at
    items: list[Reply] = Push() if kind == b">" else []
    for _ in range(2 * count if kind in b"%|" else count):
        found = _read(data, at)
        if found is None:
            return None
        item, at = found
        items.append(item)
    if kind == b"|":  # remarks on the reply that follows
        return _read(data, at)
    return items, at
