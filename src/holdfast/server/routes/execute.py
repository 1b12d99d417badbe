"""Where timers call (`timers`): one key, and what is due under it is done."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import StringConstraints, with_config
from starlette.responses import Response
from typing_extensions import TypedDict

from holdfast.logs import EventLog, trace_of
from holdfast.server.answers import answer
from holdfast.server.models import words
from holdfast.server.models.answers import EXACT
from holdfast.server.problems import Refused
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import CLOSED, Shape
from holdfast.timers.signing import LONGEST

log = EventLog("holdfast.server")
routes = Routes("timers")

EXECUTE: Final = "/v1/tasks/execute"

_Token = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST, pattern=words.NO_NUL, strict=True)
]


@with_config(CLOSED)
class TimerCall(TypedDict):
    """The call of a timer: a token that says what it is about, signed by this server."""

    token: _Token


@with_config(EXACT)
class TimerAnswer(TypedDict):
    """Whatever was due under this key is done; nothing, if it was done before or is not due."""

    status: Literal["ok"]


@routes(
    "POST",
    EXECUTE,
    "Do what a timer was armed for",
    says="Called by the timer service of `timer_url`, with a token that this server signed, or "
    "with the bearer token of its service account. What is over, unknown or not due yet is "
    "answered with 200 too, so that nobody calls again for it; 503 asks for another call.",
    answers=TimerAnswer,
    takes=Shape(TimerCall),
    largest=4 * LONGEST,
)
async def execute_timer(request: ApiRequest[TimerCall]) -> Response:
    service = request.service

    given = request.headers.get("authorization", "")
    key = await service.timer_calls.key_of(request.words["token"], given, service.now)
    try:
        await service.execute(key)
    except Exception as error:
        log.error("timer.failed", key=key, exception=trace_of(error))
        raise Refused(
            503,
            "execute_failed",
            f"what is due under {key!r} could not be done; call again",
            headers={"Retry-After": "1"},
        ) from error
    return answer({"status": "ok"})
