"""A slow network on the loopback, whatever is spoken: bytes pass later than they came, or not."""

from __future__ import annotations

import asyncio
import ssl
import threading
from contextlib import suppress
from typing import Self


class SlowWay:
    """Listens on a free port of the loopback, with TLS if told how, and passes on to `target`,
    another one, without.

    Attributes:
        delay: Seconds that everything takes longer, each way. Change it at any time.
    """

    def __init__(self, target: int, *, tls: ssl.SSLContext | None = None) -> None:
        self.delay = 0.0
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="slow", daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._welcome, "127.0.0.1", 0, ssl=tls)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            theirs, ours = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                await asyncio.gather(self._pump(reader, ours), self._pump(theirs, writer))
            finally:
                ours.transport.abort()
        writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await asyncio.sleep(self.delay)
            writer.write(data)
        raise ConnectionError("one side has ended")

    async def _close(self) -> None:
        self._server.close()
        await asyncio.sleep(0.01)  # who was on the way in has come in, and can be let go of
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
