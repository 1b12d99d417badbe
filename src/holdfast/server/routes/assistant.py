"""The assistant: plain words in, tasks out.

With `Accept: text/event-stream` the answer comes as a stream: `progress` events while it works,
then one `answer`, or one `problem` with what would have been the body of the refusal.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from holdfast.assistant.assistant import Assistant, Tell, silent
from holdfast.core.assistant_answers import AssistantAnswer
from holdfast.core.task import Json
from holdfast.errors import HoldfastError
from holdfast.server.access import ASSISTANT
from holdfast.server.answers import answer
from holdfast.server.assistant_reach import reached
from holdfast.server.events import HEADERS, encoded
from holdfast.server.instants import read_instant
from holdfast.server.models.assistant import NewMessages
from holdfast.server.problems import Refused, body_of, refusal_of
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape

routes = Routes("assistant")

STREAM: Final = "text/event-stream"
_EVENT: Final = {
    "type": "object",
    "description": "One event of the stream: `progress`, then `answer` or `problem`.",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["event", "data"],
}


def _also_a_stream(described: dict[str, Any]) -> None:
    described["responses"][200]["content"][STREAM] = {"schema": _EVENT}


@routes(
    "POST",
    f"{ASSISTANT}/messages",
    "Say in plain words what is to be done, and when",
    says="Makes or changes one task of the owner, asks back, or refuses with the fields at fault. "
    "The answer to a question continues the request before it. With `Accept: text/event-stream` "
    "it tells what it does while it works.",
    answers=AssistantAnswer,
    takes=Shape(NewMessages, nullable=True),
    largest=None,
    refuses=(409,),
    example={
        "chat_id": "chat-7", "timezone": "Europe/Berlin",
        "messages": [{"role": "user", "content": "every weekday at 9 summarise my inbox"}],
    },
    amend=_also_a_stream,
)  # fmt: skip
async def send_messages(request: ApiRequest[NewMessages]) -> Response:
    wanted = request.words
    assistant, owner = await reached(request.service, request.token, wanted.get("owner"))
    if STREAM in request.headers.get("accept", ""):
        return StreamingResponse(
            _told(assistant, wanted, owner), media_type=STREAM, headers=HEADERS
        )
    return answer(await _asked(assistant, wanted, owner))


async def _asked(
    assistant: Assistant, wanted: NewMessages, owner: str | None, tell: Tell = silent
) -> AssistantAnswer:
    now = wanted.get("now")
    return await assistant.message(
        wanted.get("messages", ()),
        chat_id=wanted["chat_id"],
        timezone=wanted["timezone"],
        owner=owner,
        now=None if now is None else read_instant("now", now),
        confirm=wanted.get("confirm"),
        tell=tell,
    )


async def _told(
    assistant: Assistant, wanted: NewMessages, owner: str | None
) -> AsyncIterator[bytes]:
    steps: asyncio.Queue[str | None] = asyncio.Queue()

    async def work() -> AssistantAnswer:
        try:
            return await _asked(assistant, wanted, owner, steps.put)
        finally:
            await steps.put(None)

    working = asyncio.ensure_future(work())
    try:
        while (step := await steps.get()) is not None:
            yield encoded("progress", {"step": step})
        yield encoded(*await _ended(working))
    finally:
        working.cancel()


async def _ended(working: asyncio.Future[AssistantAnswer]) -> tuple[str, Json]:
    try:
        return "answer", await working
    except (HoldfastError, Refused) as error:
        refused = error if isinstance(error, Refused) else refusal_of(error)
        return "problem", body_of(refused, secrets.token_hex(8))
