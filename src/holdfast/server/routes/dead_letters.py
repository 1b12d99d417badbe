"""Dead letters: what gave up, to be looked at, started again or forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from starlette.responses import Response

from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.core.task_answers import ActionAnswer, TaskPage
from holdfast.errors import InvalidTransition
from holdfast.server.filters import filter_of
from holdfast.server.models.tasks import DeadSearch, Discard, NoQuery, Replay, TaskSearch
from holdfast.server.routes.actions import done
from holdfast.server.routes.tasks import STEERED, page_of, retry_task
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape

routes = Routes("dead letters")

DEAD: Final = "/api/v1/dead-letters"


@routes(
    "GET",
    DEAD,
    "List dead letters",
    answers=TaskPage,
    query=Shape(DeadSearch),
    refuses=(404, 409),
)
async def list_dead_letters(request: ApiRequest[DeadSearch]) -> Response:
    words = request.words
    asked = TaskSearch(**words)  # type: ignore[typeddict-item] # the same words without `status`
    return await page_of(request, _dead(filter_of(words)), asked)


@routes(
    "POST",
    f"{DEAD}/replay",
    "Start dead letters again",
    says="All of them without a filter; `pace` of them a second, oldest first, if it is given.",
    answers=ActionAnswer,
    takes=Shape(Replay),
    example={"filter": {"queue": "mail"}, "pace": 5.0},
    is_optional=True,
    refuses=(404, 409),
)
async def replay_dead_letters(request: ApiRequest[Replay]) -> Response:
    return await _act(request, "replay", pace=request.words.get("pace"))


@routes(
    "POST",
    f"{DEAD}/discard",
    "Forget dead letters for good",
    says="All of them without a filter.",
    answers=ActionAnswer,
    takes=Shape(Discard),
    example={"filter": {"queue": "mail"}, "dry_run": True},
    is_optional=True,
    refuses=(404, 409),
)
async def discard_dead_letters(request: ApiRequest[Discard]) -> Response:
    return await _act(request, "discard")


async def _act(
    request: ApiRequest[Replay] | ApiRequest[Discard], action: str, pace: float | None = None
) -> Response:
    which, dry_run = filter_of(request.words.get("filter", {})), request.words.get("dry_run", False)
    return await done(request, action, _dead(which), pace=pace, dry_run=dry_run)


@routes(
    "POST",
    f"{DEAD}/{{task_id}}/replay",
    "Start one dead letter again",
    answers=STEERED,
    refuses=(409,),
)
async def replay_dead_letter(request: ApiRequest[NoQuery]) -> Response:
    task = await (await request.reach()).get(request.named)
    if task.state is not State.DEAD_LETTER:
        raise InvalidTransition(task.id, "replay", task.state, State.DEAD_LETTER)
    return await retry_task(request)


def _dead(which: TaskFilter) -> TaskFilter:
    return replace(which, states=frozenset({State.DEAD_LETTER}))
