"""A port where a supervisor tells the counts of its processes, and whether they are alive.

    GET /metrics     counters and histograms of these processes, in Prometheus' words
    GET /healthz     200 if every one of them has beaten in time, else 503

What is asked here is answered from memory: a store that is away changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from holdfast.core.metrics import Counts
from holdfast.metrics.exposition import counted, text_of

LONGEST: Final = 8192
PATIENCE: Final = 10.0
PLAIN: Final = "text/plain; charset=utf-8"
_REASONS: Final = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
                   503: "Service Unavailable"}  # fmt: skip


class MetricsPort:
    """Answers until closed. `counts` are all so far, `unwell` says what is wrong, if anything."""

    def __init__(self, counts: Callable[[], Counts], unwell: Callable[[], str | None]) -> None:
        self._counts = counts
        self._unwell = unwell
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen; returns the port. `OSError` if it cannot be had."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=LONGEST)
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError,
                      asyncio.LimitOverrunError):  # fmt: skip
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                status, kind, body = self._answer(head)
                said = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
                said += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                writer.write(said.encode() + body)
                await writer.drain()
        writer.close()

    def _answer(self, head: bytes) -> tuple[int, str, bytes]:
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3:
            return 400, PLAIN, b"this is no HTTP\n"
        method, path = words[0], words[1].partition("?")[0]
        if path not in ("/metrics", "/healthz"):
            return 404, PLAIN, b"there are /metrics and /healthz\n"
        if method != "GET":
            return 405, PLAIN, b"only GET\n"
        if path == "/healthz":
            unwell = self._unwell()
            return (200, PLAIN, b"ok\n") if unwell is None else (503, PLAIN, unwell.encode())
        accept = next((x for x in lines if x.lower().startswith("accept:")), "")
        body, kind = text_of(counted(self._counts()), accept.partition(":")[2].strip())
        return 200, kind, body
