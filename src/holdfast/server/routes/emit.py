"""Events that tasks wait for."""

from __future__ import annotations

from typing import Annotated, Any, Required

from pydantic import Field, StringConstraints, with_config
from starlette.responses import Response
from typing_extensions import TypedDict

from holdfast.core.store_answers import EMITTED, EmitAnswer
from holdfast.definitions.readers import LONGEST_NAME
from holdfast.server.answers import answer
from holdfast.server.models import words
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import CLOSED, Shape

routes = Routes("events")

_Text = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=words.NO_NUL, strict=True),
]
_Number = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


@with_config(CLOSED)
class Emit(TypedDict, total=False):
    """Something that has happened: which event, which one of them, and what tasks that wait for it
    are told.
    """

    event: Required[words.Name]
    key: Required[_Text | _Number]
    payload: Any


@routes(
    "POST",
    "/api/v1/events",
    "Emit an event that tasks wait for",
    says="The first of an event and key counts, and is kept for `retention`; repeating it is safe.",
    answers=EmitAnswer,
    takes=Shape(Emit),
    largest=None,
    example={"event": "approved", "key": "order-17", "payload": {"by": "ada"}},
)
async def emit_event(request: ApiRequest[Emit]) -> Response:
    body = request.words
    client = await request.verbs()
    return answer(EMITTED.write(await client.emit(body["event"], body["key"], body.get("payload"))))
