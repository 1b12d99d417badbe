"""Queues: how full they are, and holding them up."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from pydantic import with_config
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from holdfast import views
from holdfast.core.store_answers import PauseAnswer, QueueList, StatsAnswer
from holdfast.errors import InvalidArguments, InvalidOption
from holdfast.server.answers import answer
from holdfast.server.documented import QUEUE, documented
from holdfast.server.models import words
from holdfast.server.models.tasks import NoQuery
from holdfast.server.problems import Refused
from holdfast.server.service import service_of
from holdfast.server.shape import SPELLED, Shape

router = APIRouter(tags=["queues"])

QUEUES: Final = "/api/v1/queues"
PLAIN = Shape(NoQuery)


@with_config(SPELLED)
class NumbersQuery(TypedDict, total=False):
    """The query of the numbers."""

    queue: words.Key


ONE = Shape(NumbersQuery)


@router.get(
    "/api/v1/queue/stats",
    **documented(
        "The store in numbers",
        says="Cheap however deep the backlog is, and at most a second old. `queue` picks one.",
        answers=StatsAnswer,
        query=ONE,
    ),
)
async def get_stats(request: Request) -> Response:
    wanted = ONE.read_query(request.query_params).get("queue")
    service = service_of(request)
    client = await service.verbs()
    stats, workers = await service.gauge.numbers(client)
    return answer(await views.numbers(client, stats, workers, wanted))


@router.get(QUEUES, **documented("List queues", answers=QueueList, query=PLAIN))
async def list_queues(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    service = service_of(request)
    client = await service.verbs()
    stats = (await service.gauge.numbers(client)).stats
    return answer(views.queue_list(client, stats))


@router.post(
    f"{QUEUES}/{{queue}}/pause",
    **documented(
        "Stop handing out a queue's tasks",
        says="Running ones go on. Pausing a paused queue changes nothing. A queue may be paused "
        "before its first use: `known` is false if no task is in it and no live worker names it.",
        answers=PauseAnswer,
        query=PLAIN,
        refuses=(404,),
        paths=QUEUE,
    ),
)
async def pause_queue(request: Request) -> Response:
    return await _set(request, paused=True)


@router.post(
    f"{QUEUES}/{{queue}}/resume",
    **documented(
        "Hand out a queue's tasks again",
        answers=PauseAnswer,
        query=PLAIN,
        refuses=(404,),
        paths=QUEUE,
    ),
)
async def resume_queue(request: Request) -> Response:
    return await _set(request, paused=False)


async def _set(request: Request, *, paused: bool) -> Response:
    PLAIN.read_query(request.query_params)
    queue: str = request.path_params["queue"]
    service = service_of(request)
    client = await service.verbs()
    try:
        changed = await (client.pause(queue) if paused else client.resume(queue))
    except (InvalidOption, InvalidArguments) as error:
        raise Refused(404, "queue_not_found", f"no queue can have this name: {error}") from None
    service.gauge.forget()
    is_known = await client.knows_queue(queue)
    return answer({"queue": queue, "paused": paused, "changed": changed, "known": is_known})
