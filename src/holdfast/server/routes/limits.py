"""Limits, rates, shares and breakers: who holds them, who waits, and how many may pass."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, with_config
from starlette.responses import Response
from typing_extensions import TypedDict

from holdfast.core.store_answers import (
    LIMIT_CHANGE,
    LimitChangeAnswer,
    LimitDetailsAnswer,
    LimitList,
)
from holdfast.definitions.limits import MOST
from holdfast.errors import InvalidArguments, InvalidOption
from holdfast.server.answers import answer
from holdfast.server.models import words
from holdfast.server.models.tasks import NoQuery
from holdfast.server.problems import Refused
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import CLOSED, SPELLED, Shape
from holdfast.views import limit_details, limit_list

routes = Routes("limits")

LIMITS: Final = "/api/v1/limits"
ONE: Final = f"{LIMITS}/{{limit:path}}"


@with_config(SPELLED)
class LimitsQuery(TypedDict, total=False):
    """Which limits."""

    after: words.Key
    limit: Annotated[int, Field(ge=1, le=1000)]


@with_config(CLOSED)
class NewLimit(TypedDict, total=False):
    """How many may pass: a `capacity`, or of a breaker its `state`."""

    capacity: Annotated[int, Field(ge=0, le=MOST)]
    state: Literal["open", "closed"]


@routes(
    "GET",
    LIMITS,
    "List limits, rates, shares and breakers",
    says="Those that somebody uses or has set, by name. `next`, sent as `after`, brings more.",
    answers=LimitList,
    query=Shape(LimitsQuery),
)
async def list_limits(request: ApiRequest[LimitsQuery]) -> Response:
    client = await request.verbs()
    return answer(limit_list(await client.limits(**request.words)))


@routes("GET", ONE, "One of them, with who holds it and who waits", answers=LimitDetailsAnswer)
async def get_limit(request: ApiRequest[NoQuery]) -> Response:
    client = await request.verbs()
    try:
        found = await client.limit(request.named)
    except (InvalidOption, InvalidArguments) as error:
        raise _no_such(str(error)) from None
    if found is None:
        raise _no_such("nobody uses it now and nobody has set it")
    return answer(limit_details(found))


@routes(
    "PUT",
    ONE,
    "Set how many may pass",
    says="Holds until it is taken back, whatever tasks say; tasks that wait pass at once if there "
    "is room. A breaker takes a `state` instead. `known` is false if nothing has this name.",
    answers=LimitChangeAnswer,
    takes=Shape(NewLimit),
    refuses=(409,),
    example={"capacity": 10},
)
async def set_limit(request: ApiRequest[NewLimit]) -> Response:
    wanted = request.words
    value = wanted.get("state", wanted.get("capacity"))
    if value is None or len(wanted) != 1:
        raise Refused(
            409, "conflicting_options", "give `capacity` or, for a breaker, `state`: one of them"
        )
    return await _set(request, value)


@routes("DELETE", ONE, "Let tasks say again how many may pass", answers=LimitChangeAnswer)
async def unset_limit(request: ApiRequest[NoQuery]) -> Response:
    return await _set(request, None)


async def _set(request: ApiRequest[Any], value: int | str | None) -> Response:
    client, name = await request.verbs(), request.named
    try:
        done = await (client.unset_limit(name) if value is None else client.set_limit(name, value))
    except InvalidOption as error:
        if error.option == "name":
            raise _no_such(str(error)) from None
        raise Refused(409, "conflicting_options", str(error)) from None
    except InvalidArguments as error:
        raise _no_such(str(error)) from None
    return answer(LIMIT_CHANGE.write(done))


def _no_such(why: str) -> Refused:
    return Refused(404, "limit_not_found", f"there is no such limit: {why}")
