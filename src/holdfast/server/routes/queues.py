"""Queues: how full they are, and holding them up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fastapi import APIRouter
from pydantic import with_config
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from holdfast.client import Client
from holdfast.core.fleet import ALIVE, WorkerInfo, WorkerStatus
from holdfast.core.stats import Depth, QueueStats
from holdfast.core.task import Json, Priority, State
from holdfast.errors import InvalidArguments, InvalidOption
from holdfast.server import views
from holdfast.server.answers import answer
from holdfast.server.depths import effective_depths
from holdfast.server.documented import QUEUE, documented
from holdfast.server.models import words
from holdfast.server.models.answers import PauseAnswer, QueueList, StatsAnswer
from holdfast.server.models.tasks import NoQuery
from holdfast.server.problems import Refused
from holdfast.server.service import Service, service_of
from holdfast.server.shape import SPELLED, Shape

router = APIRouter(tags=["queues"])

QUEUES: Final = "/api/v1/queues"
PLAIN = Shape(NoQuery)


@with_config(SPELLED)
class One(TypedDict, total=False):
    """The query of the numbers."""

    queue: words.Key


ONE = Shape(One)


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
    ended = stats.last_minute
    queues = [each for each in stats.queues if wanted in (None, each.queue)]
    live = [worker for worker in workers if worker.status in ALIVE]
    return answer(
        {
            "queues": await _by_effective_priority(client, queues, wanted),
            "named_queues": [_queue(service, each) for each in queues],
            "priorities": [views.depth(each) for each in _depths(queues)],
            "workers": _by_status(workers)
            | {
                "total_capacity": sum(worker.capacity for worker in live),
                "used_capacity": sum(worker.load for worker in live),
            },
            "throughput": {
                "completed_last_minute": ended[State.COMPLETED],
                "failed_last_minute": ended[State.FAILED] + ended[State.DEAD_LETTER],
            },
            "statuses": {state.value: count for state, count in stats.states.items()},
            "last_minute": {state.value: count for state, count in ended.items()},
            "refused": stats.refused,
        }
    )


@router.get(QUEUES, **documented("List queues", answers=QueueList, query=PLAIN))
async def list_queues(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    service = service_of(request)
    stats = (await service.gauge.numbers(await service.verbs())).stats
    known = {each.queue: each for each in stats.queues}
    idle = {name: _idle(name) for name in service.settings.open_queues if name not in known}
    listed = sorted((known | idle).items())
    return answer({"queues": [_queue(service, each) for _, each in listed]})


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
    is_known = queue in service.settings.open_queues or await client.knows_queue(queue)
    return answer({"queue": queue, "paused": paused, "changed": changed, "known": is_known})


def _queue(service: Service, stats: QueueStats) -> Json:
    return views.queue(stats, is_open=stats.queue in service.settings.open_queues)


async def _by_effective_priority(
    client: Client, queues: Iterable[QueueStats], wanted: str | None
) -> dict[str, Json]:
    """By what it is worth now; `medium` is what many call `normal`."""
    depths = await effective_depths(client, queues, wanted)
    found: dict[str, Json] = {
        priority.value: {
            "depth": depth.ready,
            "depth_is_capped": depth.is_capped,
            "oldest_age_seconds": depth.oldest_seconds,
        }
        for priority, depth in depths.items()
    }
    return found | {"medium": found["normal"]}


def _idle(name: str) -> QueueStats:
    return QueueStats(queue=name, paused=False, ready=0, waiting=0, blocked=0, running=0, depths=())


def _depths(queues: Iterable[QueueStats]) -> list[Depth]:
    """The depths of all queues together."""
    found: list[Depth] = []
    every = [depth for queue in queues for depth in queue.depths]
    for priority in Priority:
        same = [depth for depth in every if depth.priority is priority]
        waits = [depth.oldest_seconds for depth in same if depth.oldest_seconds is not None]
        ready = sum(depth.ready for depth in same)
        found.append(Depth(priority=priority, ready=ready, oldest_seconds=max(waits, default=None)))
    return found


def _by_status(workers: Iterable[WorkerInfo]) -> Json:
    counts = {status.value: 0 for status in WorkerStatus}
    for worker in workers:
        counts[worker.status.value] += 1
    return counts
