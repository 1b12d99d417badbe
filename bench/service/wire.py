"""HTTP/1.1 with as little of our own time as possible: what is measured is the server."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self


class Wire:
    """One kept-alive connection; a request at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._head = f"Host: bench\r\nAuthorization: Bearer {token}\r\n"

    @classmethod
    async def open(cls, port: int, token: str) -> Self:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        return cls(reader, writer, token)

    async def get(self, path: str) -> Any:
        return await self._ask(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())

    async def post(self, path: str, body: bytes) -> Any:
        head = (
            f"POST {path} HTTP/1.1\r\n{self._head}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return await self._ask(head.encode() + body)

    def close(self) -> None:
        self._writer.close()

    async def _ask(self, request: bytes) -> Any:
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status, length = int(head[9:12]), _length(head)
        body = await self._reader.readexactly(length)
        if status >= 300:
            raise RuntimeError(f"{request[:60]!r}: {status} {body[:300]!r}")
        return json.loads(body)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise RuntimeError(f"an answer without its length: {head!r}")
