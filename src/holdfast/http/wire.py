"""The wire: httpx. The only file that knows it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from weakref import WeakKeyDictionary

import httpx
import orjson

from holdfast.core.task import TaskId
from holdfast.definitions.tracing import current_traceparent
from holdfast.errors import StoreUnavailable
from holdfast.http.problems import error_of
from holdfast.http.talk import Lost, Reply, Request
from holdfast.http.values import RemoteEvent

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
SILENCE = 60.0
"""Seconds without a word, not even a heartbeat, after which an event stream counts as broken."""
COME_BACK_AFTER = 1.0
MOST_FAILURES = 10


class Wire:
    """Connections to one server: one pool for sync calls, one for each event loop."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        self.url = url.rstrip("/")
        self._headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
        self._timeout = timeout
        self._lock = threading.Lock()
        self._blocking: httpx.Client | None = None
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            WeakKeyDictionary()
        )

    def send(self, request: Request) -> Reply | Lost:
        """Send one request and wait for the answer."""
        try:
            return _reply(self._client().send(self._built(self._client(), request)))
        except httpx.TransportError as error:
            return _lost(error)

    async def send_async(self, request: Request) -> Reply | Lost:
        client = self._async_client()
        try:
            return _reply(await client.send(self._built(client, request)))
        except httpx.TransportError as error:
            return _lost(error)

    def events(self, task_id: TaskId, after: str | None) -> Iterator[RemoteEvent]:
        """A task's events; comes back by itself until the end was told."""
        stream = _EventStream(task_id, after)
        while stream.goes_on:
            try:
                with self._client().stream(
                    "GET", stream.path, headers=stream.headers, timeout=stream.timeout
                ) as answer:
                    if stream.refuses(answer.status_code):
                        raise error_of(answer.status_code, answer.read())
                    for line in answer.iter_lines():
                        yield from stream.take(line)
            except httpx.TransportError as error:
                stream.failed(error)
            if stream.goes_on:
                time.sleep(COME_BACK_AFTER)

    async def events_async(self, task_id: TaskId, after: str | None) -> AsyncIterator[RemoteEvent]:
        stream = _EventStream(task_id, after)
        while stream.goes_on:
            try:
                async with self._async_client().stream(
                    "GET", stream.path, headers=stream.headers, timeout=stream.timeout
                ) as answer:
                    if stream.refuses(answer.status_code):
                        raise error_of(answer.status_code, await answer.aread())
                    async for line in answer.aiter_lines():
                        for event in stream.take(line):
                            yield event
            except httpx.TransportError as error:
                stream.failed(error)
            if stream.goes_on:
                await asyncio.sleep(COME_BACK_AFTER)

    def close(self) -> None:
        with self._lock:
            client, self._blocking = self._blocking, None
        if client is not None:
            client.close()

    async def close_async(self) -> None:
        self.close()
        client = self._by_loop.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.Client:
        with self._lock:
            if self._blocking is None:
                self._blocking = httpx.Client(
                    base_url=self.url, headers=self._headers, timeout=self._timeout
                )
            return self._blocking

    def _async_client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._by_loop.get(loop)
        if client is None:
            client = self._by_loop[loop] = httpx.AsyncClient(
                base_url=self.url, headers=self._headers, timeout=self._timeout
            )
        return client

    def _built(self, client: httpx.Client | httpx.AsyncClient, request: Request) -> httpx.Request:
        headers = {} if request.body is None else {"content-type": "application/json"}
        trace = current_traceparent()
        if trace is not None:
            headers["traceparent"] = trace
        return client.build_request(
            request.method,
            request.path,
            params=dict(request.query),
            content=request.body,
            headers=headers,
        )


class _EventStream:
    """The listener's side of SSE: puts lines together, and remembers where to go on."""

    def __init__(self, task_id: TaskId, after: str | None) -> None:
        self.path = f"/api/v1/tasks/{task_id}/events"
        self.goes_on = True
        self.timeout = httpx.Timeout(10.0, read=SILENCE)
        self._last = after or ""
        self._failures = 0
        self._event, self._data, self._id = "", "", ""

    @property
    def headers(self) -> dict[str, str]:
        wanted = {"accept": "text/event-stream"}
        return wanted | {"last-event-id": self._last} if self._last else wanted

    def refuses(self, status: int) -> bool:
        """Whether this is no stream; 204 says that it has ended before."""
        if status == httpx.codes.NO_CONTENT:
            self.goes_on = False
        return status >= httpx.codes.BAD_REQUEST

    def failed(self, error: httpx.TransportError) -> None:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            raise StoreUnavailable(f"the server did not answer: {error!r}. Try again later.")

    def take(self, line: str) -> Iterator[RemoteEvent]:
        """Take one line; an empty one completes an event."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._event = value
            case "data":
                self._data = value
            case "id":
                self._last = value
            case "" if not line and self._event:
                self._failures = 0
                self.goes_on = self._event != "end"
                yield RemoteEvent(self._event, orjson.loads(self._data), self._last)
                self._event, self._data = "", ""


def _reply(answer: httpx.Response) -> Reply:
    return Reply(status=answer.status_code, headers=answer.headers, body=answer.content)


def _lost(error: httpx.TransportError) -> Lost:
    return Lost(why=f"{type(error).__name__}: {error}", sent=not isinstance(error, NOT_SENT))
