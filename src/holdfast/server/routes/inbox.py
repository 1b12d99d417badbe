"""Inboxes: what was delivered to be read in a product, listed and as it comes (SSE)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from holdfast.core.delivery_answers import InboxItemAnswer, InboxList
from holdfast.delivery.inbox import Inbox, InboxItem, shown_item
from holdfast.errors import StoreUnavailable
from holdfast.server.access import INBOX
from holdfast.server.answers import answer, nothing
from holdfast.server.events import COME_BACK_AFTER_MS, HEADERS, HEARTBEAT, LONGEST
from holdfast.server.models.delivery import InboxSearch, InboxStream, ReadMark
from holdfast.server.models.tasks import NoQuery
from holdfast.server.owned import owner_for
from holdfast.server.problems import Refused
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape
from holdfast.views import to_json

routes = Routes("inbox")

ONE: Final = f"{INBOX}/{{item_id}}"
LOOK_EVERY: Final = 0.5
PAGE: Final = 100

_EVENT: Final = {
    "type": "object",
    "description": "One event of the stream; `data` is an item as JSON.",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string", "enum": ["item"]},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"type": "object"},
        },
    },
    "required": ["event", "data"],
}


@routes(
    "GET",
    INBOX,
    "List what is in an inbox",
    says="Newest first. `next`, sent as `before`, brings older ones.",
    answers=InboxList,
    query=Shape(InboxSearch),
)
async def list_inbox(request: ApiRequest[InboxSearch]) -> Response:
    words = request.words
    page = await (await _inbox(request)).list(
        owner_for(request.token, words.get("owner")),
        before=words.get("before"),
        limit=words.get("limit", 100),
        unread=words.get("unread") == "true",
    )
    return answer({"items": [shown_item(item) for item in page.items], "next": page.next})


def _as_a_stream(described: dict[str, Any]) -> None:
    described["responses"][200]["content"] = {"text/event-stream": {"schema": _EVENT}}
    described["openapi_extra"]["parameters"].append(
        {"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}}
    )


@routes(
    "GET",
    f"{INBOX}/events",
    "Follow an inbox as it fills",
    says="Server-sent events: an `item` for each that comes. The id of an event is the item's "
    "number; whoever comes back with it as `Last-Event-ID` misses nothing. Without it, what "
    "comes from now on is told.",
    answers=None,
    query=Shape(InboxStream),
    amend=_as_a_stream,
)
async def inbox_events(request: ApiRequest[InboxStream]) -> Response:
    inbox, owner = await _inbox(request), owner_for(request.token, request.words.get("owner"))
    last = request.headers.get("last-event-id", "")
    is_number = last.isascii() and last.isdecimal() and len(last) < 12
    start = int(last) if is_number else await inbox.last_number(owner)
    told = _told(inbox, owner, start, request.app.state.stopping)
    return StreamingResponse(told, media_type="text/event-stream", headers=HEADERS)


async def _told(
    inbox: Inbox, owner: str | None, number: int, stopping: asyncio.Event
) -> AsyncIterator[bytes]:
    """All items after this number, until it is time to come back."""
    yield b"retry: %d\n\n" % COME_BACK_AFTER_MS
    until = time.monotonic() + LONGEST
    said_at = time.monotonic()
    while not stopping.is_set() and time.monotonic() < until:
        items = await _since(inbox, owner, number)
        for item in items:
            number = item.number
            yield b"id: %d\nevent: item\ndata: %s\n\n" % (number, to_json(shown_item(item)))
        if items:
            said_at = time.monotonic()
        elif time.monotonic() - said_at > HEARTBEAT:
            said_at = time.monotonic()
            yield b": still here\n\n"
        if len(items) < PAGE:
            await _rest(stopping)


async def _since(inbox: Inbox, owner: str | None, number: int) -> list[InboxItem]:
    try:
        return list(await inbox.since(owner, number, limit=PAGE))
    except StoreUnavailable:
        return []  # the stream stays; what comes meanwhile is told later


async def _rest(stopping: asyncio.Event) -> None:
    waiting = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([waiting], timeout=LOOK_EVERY)
    finally:
        waiting.cancel()


@routes("GET", ONE, "One item of an inbox", answers=InboxItemAnswer)
async def get_inbox_item(request: ApiRequest[NoQuery]) -> Response:
    return answer(shown_item(await _item(request, await _inbox(request))))


@routes(
    "PATCH",
    ONE,
    "Note that an item was read, or take that back",
    answers=InboxItemAnswer,
    takes=Shape(ReadMark),
    example={"read": True},
)
async def mark_inbox_item(request: ApiRequest[ReadMark]) -> Response:
    inbox = await _inbox(request)
    item = await _item(request, inbox)
    marked = await inbox.mark_read(item.owner, item.id, is_read=request.words["read"])
    return answer(shown_item(marked or item))


@routes("DELETE", ONE, "Forget an item of an inbox", answers=None, status=204)
async def delete_inbox_item(request: ApiRequest[NoQuery]) -> Response:
    inbox = await _inbox(request)
    item = await _item(request, inbox)
    await inbox.delete(item.owner, item.id)
    return nothing()


async def _inbox(request: ApiRequest[Any]) -> Inbox:
    client = await request.verbs()
    return Inbox(client.store, client.settings.inbox_retention)


async def _item(request: ApiRequest[Any], inbox: Inbox) -> InboxItem:
    """The item that is named, if it is there for this token."""
    mine = owner_for(request.token, None)
    item = await inbox.find(request.named.lower())
    if item is None or mine not in (None, item.owner):
        raise Refused(404, "item_not_found", "there is no such item in this inbox")
    return item
