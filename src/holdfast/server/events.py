"""`GET /api/v1/tasks/{task_id}/events`: what happens to a task, as it happens (SSE).

The events are `log` (a line the handler wrote), `history` (an attempt's start or end, a cancel
request and the like), `progress`, `state`, and `end`, after which the stream closes. Each but the
last carries an id; a listener that comes back with it as `Last-Event-ID` misses nothing of the
history and hears nothing of it twice. One that comes back after the end gets 204, which tells
browsers not to come again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from holdfast.client import Client
from holdfast.core.task import Json, TaskId
from holdfast.errors import TaskNotFound
from holdfast.filters import read_id
from holdfast.server.access import TASKS
from holdfast.server.answers import nothing
from holdfast.server.models.tasks import NoQuery
from holdfast.server.news import Message, StreamPosition, news
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.watching import Watch, look
from holdfast.views import to_json

routes = Routes("tasks")

HEARTBEAT = 15.0
"""Seconds of silence after which a comment is sent: proxies cut what says nothing, and a listener
that is gone is noticed."""
LONGEST = 600.0
"""Seconds after which a stream ends and its listener comes back by itself."""
COME_BACK_AFTER_MS = 1000

HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


_EVENT = {
    "type": "object",
    "description": "One event of the stream; `data` is JSON.",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string", "enum": ["log", "history", "progress", "state", "end"]},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"type": "object"},
        },
    },
    "required": ["event", "data"],
}


def _as_a_stream(described: dict[str, Any]) -> None:
    described["responses"][200]["content"] = {"text/event-stream": {"schema": _EVENT}}
    described["responses"][204] = {"description": "The task has ended, and you know it all."}
    described["openapi_extra"]["parameters"].append(
        {"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}}
    )


@routes(
    "GET",
    f"{TASKS}/{{task_id}}/events",
    "Follow a task as it happens",
    says="Server-sent events: `log`, `history`, `progress`, `state`, and at last `end`. Come "
    "back with the id of the last one as `Last-Event-ID` to go on from there; 204 says that "
    "there is nothing more to come.",
    answers=None,
    amend=_as_a_stream,
)
async def events(request: ApiRequest[NoQuery]) -> Response:
    client = await request.verbs()
    place = StreamPosition.read(request.headers.get("last-event-id"))
    task_id = read_id(request.named)
    await (await request.reach()).get(task_id)
    snapshot = await look(client, task_id)
    if snapshot.is_final and place != StreamPosition() and not any(news(snapshot, place)):
        return nothing()
    told = _Stream(request, client).told(task_id, place)
    return StreamingResponse(told, media_type="text/event-stream", headers=HEADERS)


class _Stream:
    """One listener's stream."""

    def __init__(self, request: ApiRequest[NoQuery], client: Client) -> None:
        self._stopping: asyncio.Event = request.app.state.stopping
        self._client = client
        self._watches = request.service.watches
        self._until = time.monotonic() + LONGEST

    async def told(self, task_id: TaskId, place: StreamPosition) -> AsyncIterator[bytes]:
        """All that happens from this place on, until the end or until it is time to go."""
        yield b"retry: %d\n\n" % COME_BACK_AFTER_MS
        try:
            async with self._watches.on(self._client, task_id) as watch:
                async for piece in self._followed(watch, place):
                    yield piece
        except TaskNotFound:
            yield _FORGOTTEN

    async def _followed(self, watch: Watch, place: StreamPosition) -> AsyncIterator[bytes]:
        while True:
            change, latest = watch.change, watch.latest
            if latest is None:
                yield _FORGOTTEN
                return
            for message in news(latest, place):
                place = message.place
                yield _message(message)
            if latest.is_final:
                yield encoded("end", {"status": latest.task.state})
                return
            has_news = await self._first_of(change)
            if self._stopping.is_set() or time.monotonic() > self._until:
                return
            if not has_news:
                yield b": still here\n\n"

    async def _first_of(self, change: asyncio.Event) -> bool:
        """Wait for a change; False if there was none for a heartbeat, or it is time to go."""
        waits = [asyncio.ensure_future(event.wait()) for event in (change, self._stopping)]
        try:
            await asyncio.wait(waits, timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return change.is_set()


def _message(message: Message) -> bytes:
    return b"id: %s\n%s" % (str(message.place).encode(), encoded(message.event, message.data))


def encoded(event: str, data: Json) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), to_json(data))


_FORGOTTEN = encoded("end", {"status": None, "reason": "forgotten"})
