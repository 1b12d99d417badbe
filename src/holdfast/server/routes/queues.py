"""Queues: how full they are, and holding them up."""

from __future__ import annotations

from typing import Final

from pydantic import with_config
from starlette.responses import Response
from typing_extensions import TypedDict

from holdfast import views
from holdfast.core.store_answers import PauseAnswer, QueueList, StatsAnswer
from holdfast.errors import InvalidArguments, InvalidOption
from holdfast.server.answers import answer
from holdfast.server.models import words
from holdfast.server.models.tasks import NoQuery
from holdfast.server.problems import Refused
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import SPELLED, Shape

routes = Routes("queues")

QUEUES: Final = "/api/v1/queues"


@with_config(SPELLED)
class NumbersQuery(TypedDict, total=False):
    """The query of the numbers."""

    queue: words.Key


@routes(
    "GET",
    "/api/v1/queue/stats",
    "The store in numbers",
    says="Cheap however deep the backlog is, and at most a second old. `queue` picks one.",
    answers=StatsAnswer,
    query=Shape(NumbersQuery),
)
async def get_stats(request: ApiRequest[NumbersQuery]) -> Response:
    client = await request.verbs()
    stats, workers = await request.service.gauge.numbers(client)
    return answer(await views.numbers(client, stats, workers, request.words.get("queue")))


@routes("GET", QUEUES, "List queues", answers=QueueList)
async def list_queues(request: ApiRequest[NoQuery]) -> Response:
    client = await request.verbs()
    stats = (await request.service.gauge.numbers(client)).stats
    return answer(views.queue_list(client, stats))


@routes(
    "POST",
    f"{QUEUES}/{{queue}}/pause",
    "Stop handing out a queue's tasks",
    says="Running ones go on. Pausing a paused queue changes nothing. A queue may be paused "
    "before its first use: `known` is false if no task is in it and no live worker names it.",
    answers=PauseAnswer,
)
async def pause_queue(request: ApiRequest[NoQuery]) -> Response:
    return await _set(request, paused=True)


@routes("POST", f"{QUEUES}/{{queue}}/resume", "Hand out a queue's tasks again", answers=PauseAnswer)
async def resume_queue(request: ApiRequest[NoQuery]) -> Response:
    return await _set(request, paused=False)


async def _set(request: ApiRequest[NoQuery], *, paused: bool) -> Response:
    client, queue = await request.verbs(), request.named
    try:
        changed = await (client.pause(queue) if paused else client.resume(queue))
    except (InvalidOption, InvalidArguments) as error:
        raise Refused(404, "queue_not_found", f"no queue can have this name: {error}") from None
    request.service.gauge.forget()
    is_known = await client.knows_queue(queue)
    return answer({"queue": queue, "paused": paused, "changed": changed, "known": is_known})
