"""Redis's protocol with as little of our own time as possible: what is measured is the idea."""

from __future__ import annotations

import asyncio
from typing import Any, Self
from urllib.parse import urlsplit

Word = bytes | str | int


class Line:
    """One connection; a command at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, url: str) -> Self:
        parts = urlsplit(url)
        return cls(*await asyncio.open_connection(parts.hostname, parts.port))

    async def ask(self, *words: Word) -> Any:
        """The answer of one command: an integer, bytes, None or a list of them."""
        self._writer.write(_encoded(words))
        return await self._answer()

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def _answer(self) -> Any:
        line = await self._reader.readuntil(b"\r\n")
        kind, rest = line[:1], line[1:-2]
        match kind:
            case b"*":
                return [await self._answer() for _ in range(int(rest))]
            case b"$" if int(rest) >= 0:
                return (await self._reader.readexactly(int(rest) + 2))[:-2]
            case b"$":
                return None
            case b"-":
                raise RuntimeError(rest.decode())
            case b":":
                return int(rest)
            case _:
                return rest


def _encoded(words: tuple[Word, ...]) -> bytes:
    pieces = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        pieces.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(pieces)
