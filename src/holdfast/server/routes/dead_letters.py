"""Dead letters: what gave up, to be looked at, started again or forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.core.task_answers import ActionAnswer, TaskPage
from holdfast.errors import InvalidTransition
from holdfast.server.answers import answer
from holdfast.server.bodies import read_optional_json
from holdfast.server.documented import TASK_ID, documented
from holdfast.server.filters import filter_of
from holdfast.server.models.tasks import DeadSearch, Discard, NoQuery, Replay, TaskSearch
from holdfast.server.routes.actions import done
from holdfast.server.routes.tasks import STEERED, page_of, retried
from holdfast.server.service import service_of
from holdfast.server.shape import Shape

router = APIRouter(tags=["dead letters"])

DEAD: Final = "/api/v1/dead-letters"
SEARCH = Shape(DeadSearch)
REPLAY = Shape(Replay)
DISCARD = Shape(Discard)
PLAIN = Shape(NoQuery)
EXAMPLE: Final = {"filter": {"queue": "mail"}, "pace": 5.0}


@router.get(
    DEAD,
    **documented("List dead letters", answers=TaskPage, query=SEARCH, refuses=(404, 409)),
)
async def list_dead_letters(request: Request) -> Response:
    words = SEARCH.read_query(request.query_params)
    asked = TaskSearch(**words)  # type: ignore[typeddict-item] # the same words without `status`
    return await page_of(request, _dead(filter_of(words)), asked)


@router.post(
    f"{DEAD}/replay",
    **documented(
        "Start dead letters again",
        says="All of them without a filter; `pace` of them a second, oldest first, if it is given.",
        answers=ActionAnswer,
        takes=REPLAY,
        example=EXAMPLE,
        is_optional=True,
        refuses=(404, 409),
    ),
)
async def replay_dead_letters(request: Request) -> Response:
    wanted = REPLAY.read(await read_optional_json(request))
    reach = await service_of(request).reach(request)
    which, dry_run = _dead(filter_of(wanted.get("filter", {}))), wanted.get("dry_run", False)
    tasks = await done(reach, "replay", which, pace=wanted.get("pace"), dry_run=dry_run)
    return answer({"action": "replay", "dry_run": dry_run, "tasks": tasks})


@router.post(
    f"{DEAD}/discard",
    **documented(
        "Forget dead letters for good",
        says="All of them without a filter.",
        answers=ActionAnswer,
        takes=DISCARD,
        example={"filter": {"queue": "mail"}, "dry_run": True},
        is_optional=True,
        refuses=(404, 409),
    ),
)
async def discard_dead_letters(request: Request) -> Response:
    wanted = DISCARD.read(await read_optional_json(request))
    reach = await service_of(request).reach(request)
    which, dry_run = _dead(filter_of(wanted.get("filter", {}))), wanted.get("dry_run", False)
    tasks = await done(reach, "discard", which, pace=None, dry_run=dry_run)
    return answer({"action": "discard", "dry_run": dry_run, "tasks": tasks})


@router.post(
    f"{DEAD}/{{task_id}}/replay",
    **documented(
        "Start one dead letter again",
        answers=STEERED,
        query=PLAIN,
        refuses=(404, 409),
        paths=TASK_ID,
    ),
)
async def replay_dead_letter(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    service = service_of(request)
    task = await (await service.reach(request)).get(request.path_params["task_id"])
    if task.state is not State.DEAD_LETTER:
        raise InvalidTransition(task.id, "replay", task.state, State.DEAD_LETTER)
    return answer(await service.shown(request, await retried(request)))


def _dead(which: TaskFilter) -> TaskFilter:
    return replace(which, states=frozenset({State.DEAD_LETTER}))
