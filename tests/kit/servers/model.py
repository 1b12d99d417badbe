"""A language model's endpoint with a script: `POST …/chat/completions` over real HTTP.

    with ModelServer(status(429, retry_after="1"), says('{"kind": "refuse", …}')) as server:
        Settings.load(llm_url=server.url, llm_model="scripted")

Each request gets the next answer of the script; the last one is repeated. What was asked is kept
in `asked`, headers included. The bytes are written by hand, because half of the answers are none
that a web framework would send.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def prompt(self) -> str:
        """Everything that the model was told, in one text."""
        return "\n".join(str(message["content"]) for message in self.body["messages"])


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


class ModelServer:
    """Listens on a free port of the loopback, in a thread of its own."""

    def __init__(self, *script: Answer) -> None:
        self.asked: list[Asked] = []
        self._script = list(script)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model", daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, asyncio.CancelledError):
            while asked := await _read(reader):
                self.asked.append(asked)
                answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
                await answer(asked, writer)
                await writer.drain()
        writer.transport.abort()

    async def _close(self) -> None:
        self._server.close()
        await asyncio.sleep(0.01)  # who was on the way in has come in, and can be let go of
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, value in (x.split(":", 1) for x in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, json.loads(body) if body else None)


def says(
    content: object, *, finish: str = "stop", usage: object = USAGE, **message: object
) -> Answer:
    """The model's answer: text as it is, anything else as JSON text. `message` adds members."""
    text = content if content is None or isinstance(content, str) else json.dumps(content)
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text, **message},
    }
    return sends({"id": "chat-1", "choices": [choice], "usage": usage, "model": "scripted"})


def sends(body: object, *, code: int = 200, **headers: str) -> Answer:
    """This JSON, whatever it is."""
    return raw(json.dumps(body).encode(), code=code, **headers)


def raw(
    body: bytes, *, code: int = 200, content_type: str = "application/json", **headers: str
) -> Answer:
    """These bytes; `retry_after="3"` and the like become headers."""

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(code, content_type, f"content-length: {len(body)}", **headers) + body)

    return answer


def status(code: int, **headers: str) -> Answer:
    """An error as these endpoints phrase it, which repeats the key it was given."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        told = f"error {code} for {asked.headers.get('authorization')}"
        await sends({"error": {"message": told}}, code=code, **headers)(asked, writer)

    return answer


def truncated(content: object) -> Answer:
    """An answer that ran into the limit on tokens: the first half of it."""
    text = content if isinstance(content, str) else json.dumps(content)
    return says(text[: len(text) // 2], finish="length")


def refuses() -> Answer:
    return says(None, refusal="I cannot help with that.")


def filtered() -> Answer:
    return says("", finish="content_filter")


def without_schemas(then: Answer) -> Answer:
    """An endpoint of an older kind: 400 for `json_schema`, otherwise `then`."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        asks = (asked.body.get("response_format") or {}).get("type")
        await (status(400) if asks == "json_schema" else then)(asked, writer)

    return answer


def late(seconds: float, then: Answer) -> Answer:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await then(asked, writer)

    return answer


def huge(size: int) -> Answer:
    """A body that goes on: `size` bytes, without telling before how many they are."""

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(200, "application/json", "transfer-encoding: chunked"))
        block = b" " * 65_536
        for _sent in range(0, size, len(block)):
            writer.write(b"%x\r\n%s\r\n" % (len(block), block))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    return answer


def drips(every: float) -> Answer:
    """A byte now and then, for ever: no single wait is long."""

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(200, "application/json", "transfer-encoding: chunked"))
        while not writer.is_closing():
            writer.write(b"1\r\n \r\n")
            await writer.drain()
            await asyncio.sleep(every)

    return answer


def drops() -> Answer:
    """The connection ends in the middle of the answer."""

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(200, "application/json", "content-length: 5000") + b'{"choices": [')
        await writer.drain()
        writer.transport.abort()
        raise ConnectionError

    return answer


def streams(pieces: Sequence[str], *, usage: object = USAGE, finish: str | None = "stop") -> Answer:
    """The answer in pieces, as server-sent events; without `finish` it stops in the middle."""

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(200, "text/event-stream", "connection: close"))
        for piece in pieces:
            writer.write(_event({"choices": [{"index": 0, "delta": {"content": piece}}]}))
            await writer.drain()
        if finish is not None:
            writer.write(_event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
            writer.write(_event({"choices": [], "usage": usage}) + b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()

    return answer


def _event(data: object) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def _head(code: int, content_type: str, *lines: str, **headers: str) -> bytes:
    named = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    first = [f"HTTP/1.1 {code} scripted", f"content-type: {content_type}"]
    return ("\r\n".join([*first, *lines, *named]) + "\r\n\r\n").encode()
