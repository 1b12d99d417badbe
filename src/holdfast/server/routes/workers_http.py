"""The protocol of workers in any language: register, poll, result, heartbeat, drain.

What the requests mean is in `holdfast.remote`; this reads and writes them. A poll is held open.
When its client hangs up, or the server stops, it is cancelled: nothing is claimed for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, Final

import orjson
from starlette.responses import Response

from holdfast.core.attempt import Claim, Report
from holdfast.core.fleet import WorkerStatus
from holdfast.core.task import Cost, Json, NewTask, Progress, TaskError, TaskId, WorkerId
from holdfast.core.token import Scope
from holdfast.remote import (
    UNSAID,
    EventWait,
    RemoteResult,
    RemoteWorkers,
    ResultStatus,
    Sleep,
    TakenResult,
    Verdict,
)
from holdfast.remote.results import encoded
from holdfast.remote.steps import step_entry
from holdfast.remote.workers import LONGEST_WAIT
from holdfast.server.access import refuse_scope
from holdfast.server.answers import answer
from holdfast.server.bodies import JSON, read_json
from holdfast.server.models import workers_http as models
from holdfast.server.problems import Refused
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape
from holdfast.setting_readers import EVERY_QUEUE

routes = Routes()

RESULT: Final = Shape(models.Result, nullable=True)
PREFIX: Final = "/internal/workers"
ONE: Final = f"{PREFIX}/{{worker_id}}"
FIELDS: Final = {
    Verdict.INVALID: "result",
    Verdict.AMBIGUOUS: "attempt",
    Verdict.CONFLICT: "follow_ups",
}
"""Which member of a result is to blame."""


@routes(
    "POST",
    f"{PREFIX}/register",
    "Register a worker",
    says="A worker in any language begins here. It beats every `heartbeat_seconds`, or its "
    "tasks are given to others.",
    answers=models.RegisterAnswer,
    status=201,
    takes=Shape(models.Register, nullable=True),
    is_optional=True,
    example={"capabilities": ["gpu"], "capacity": 4, "queues": ["images"], "version": "1.0"},
)
async def register_http_worker(request: ApiRequest[models.Register]) -> Response:
    body, token = request.words, request.token
    given = await (await request.verbs()).remote.register(
        capabilities=body.get("capabilities", []),
        capacity=body.get("capacity", 1),
        queues=_queues(body.get("queues"), token.bounds.queues),
        version=body.get("version", ""),
        host=request.client.host if request.client else "",
        token_id=token.id,
    )
    return answer(asdict(given), 201)


@routes(
    "POST",
    f"{ONE}/poll",
    "Ask for tasks, and wait for them",
    answers=models.PollAnswer,
    takes=Shape(models.Poll, nullable=True),
    refuses=(409,),
    example={"available_capacity": 2, "wait_seconds": 30},
)
async def poll_for_tasks(request: ApiRequest[models.Poll]) -> Response:
    body = request.words
    remote, worker_id = await _spoken_for(request)
    limit, wait = body["available_capacity"], body.get("wait_seconds", LONGEST_WAIT)
    able = body.get("capabilities")
    polling = remote.poll(worker_id, limit=limit, wait=wait, capabilities=able)
    claims = await _unless_gone(request, remote, polling)
    recorded = await remote.recorded(claims)
    tasks = [
        models.WORK.write(
            each,
            timeout_seconds=remote.timeout_of(each),
            steps=list(map(models.STEP.write, recorded.get(each.task_id, ()))),
        )
        for each in claims
    ]
    return answer({"tasks": tasks})


def _one_or_many(described: dict[str, Any]) -> None:
    takes = described["openapi_extra"]["requestBody"]["content"][JSON]
    many = {"type": "array", "maxItems": models.MOST_RESULTS, "items": takes["schema"]}
    takes["schema"] = {"anyOf": [takes["schema"], many]}


@routes(
    "POST",
    f"{ONE}/result",
    "Say how an attempt ended, or several",
    says="The attempt is the fence: a result that came too late changes nothing (409). The "
    "owner's repeat is accepted. An array is answered with one answer for each. What it brings "
    "along (`follow_ups`, `children`) takes the scope `submit` too.",
    answers=(models.ResultAnswer, models.ResultAnswers),
    body=RESULT,
    query=None,
    refuses=(409,),
    example={
        "task_id": "0192f0c1-7a3b-7cc0-8000-1f2e3d4c5b6a",
        "attempt": 1,
        "status": "completed",
        "result": {"pages": 3},
    },
    amend=_one_or_many,
)
async def take_results(request: ApiRequest[None]) -> Response:
    body = await read_json(request, None)
    if isinstance(body, list):
        return await _take_many(request, body)
    (told,) = await _take(request, {"": body})
    if not told.is_accepted:
        status, field = models.STATUSES[told.verdict], FIELDS.get(told.verdict)
        raise Refused(status, told.verdict, told.detail or "", field=field, task_id=told.task_id)
    return answer(_shown(told))


@routes(
    "POST",
    f"{ONE}/heartbeat",
    "Say that the worker lives",
    answers=models.BeatAnswer,
    takes=Shape(models.Beat, nullable=True),
    is_optional=True,
    largest=None,
    refuses=(409,),
    example={"current_load": 1, "status": "active", "running": []},
)
async def take_heartbeat(request: ApiRequest[models.Beat]) -> Response:
    body = request.words
    remote, worker_id = await _spoken_for(request)
    status, running = body.get("status"), body.get("running")
    most = request.service.settings.max_result
    told = await remote.heartbeat(
        worker_id,
        status=None if status is None else WorkerStatus(status),
        reports=[_report(worker_id, each, most) for each in body.get("reports", [])],
        running=None if running is None else [TaskId(each.lower()) for each in running],
    )
    return answer({"acknowledged": True, **asdict(told)})


@routes(
    "POST",
    f"{ONE}/drain",
    "Take no more tasks, and leave when none is left",
    says="Call it again when the last result is in: a worker without tasks has left.",
    answers=models.WorkerDrainAnswer,
    query=None,
    refuses=(409,),
)
async def drain_http_worker(request: ApiRequest[None]) -> Response:
    remote, worker_id = await _spoken_for(request)
    left = await remote.drain(worker_id)
    return answer({"running": left, "stopped": left == 0})


async def _spoken_for(request: ApiRequest[Any]) -> tuple[RemoteWorkers, WorkerId]:
    """The worker in the path; 404 unless it registered with this very token."""
    remote, worker_id = (await request.verbs()).remote, WorkerId(request.named)
    await remote.refuse_others(worker_id, request.token.id)
    return remote, worker_id


def _queues(asked: Sequence[str] | None, allowed: frozenset[str] | None) -> Sequence[str]:
    """The queues that a worker serves, of those that its token is bound to."""
    if allowed is None:
        return ["default"] if asked is None else asked
    if asked is None or EVERY_QUEUE in asked:
        return sorted(allowed)
    outside = sorted(set(asked) - allowed)
    if outside:
        raise Refused(
            403,
            "out_of_bounds",
            f"this token is bound: its workers serve {sorted(allowed)}, not {outside[0]!r}",
            field="queues",
        )
    return asked


async def _unless_gone(
    request: ApiRequest[Any], remote: RemoteWorkers, polling: Coroutine[Any, Any, Sequence[Claim]]
) -> Sequence[Claim]:
    """Wait for the poll as long as somebody waits for its answer."""
    work = asyncio.ensure_future(polling)
    gone = asyncio.ensure_future(_hung_up(request))
    stopping = asyncio.ensure_future(request.app.state.stopping.wait())
    try:
        await asyncio.wait({work, gone, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            return []
        claims = work.result()
        if claims and gone.done():
            await remote.give_back(claims)
            return []
        return claims
    finally:
        unfinished = [each for each in (work, gone, stopping) if not each.done()]
        for each in unfinished:
            each.cancel()
        if unfinished:
            await asyncio.wait(unfinished)


async def _hung_up(request: ApiRequest[Any]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _take_many(request: ApiRequest[Any], body: list[Json]) -> Response:
    if len(body) > models.MOST_RESULTS:
        raise Refused(
            422,
            "too_many_results",
            f"expected {models.MOST_RESULTS} results at most, got {len(body)}",
        )
    told = await _take(request, {f"[{n}]": each for n, each in enumerate(body)})
    return answer({"results": [_shown(each) for each in told]})


async def _take(request: ApiRequest[Any], bodies: Mapping[str, Json]) -> Sequence[TakenResult]:
    """Take results, by where they stand in the request."""
    read = {at: RESULT.read(each, at) for at, each in bodies.items()}
    results = {at: _result(each, at) for at, each in read.items()}
    remote, worker_id = await _spoken_for(request)
    follow_ups = {at: found for at, each in read.items() if (found := each.get("follow_ups"))}
    children = {at: found for at, each in read.items() if (found := each.get("children"))}
    for at, tasks in (await _brought(request, "follow_ups", follow_ups)).items():
        results[at] = replace(results[at], follow_ups=tasks)
    for at, tasks in (await _brought(request, "children", children)).items():
        results[at] = replace(results[at], children=tasks)
    return await remote.results(worker_id, list(results.values()))


async def _brought(
    request: ApiRequest[Any], which: str, wanted: Mapping[str, Sequence[Json]]
) -> Mapping[str, Sequence[NewTask]]:
    """What results bring along, as far as the worker's token may submit it."""
    if not wanted:
        return {}
    tasks, reach = {}, await request.reach()
    for at, bodies in wanted.items():
        place = _member(at, which)
        refuse_scope(request.token, Scope.SUBMIT, field=place)
        size = len(orjson.dumps(bodies))
        made = request.service.submissions.many(bodies, size, reach.follow_up, place)
        tasks[at] = list(chain.from_iterable(made))
    reach.count(sum(map(len, wanted.values())))
    return tasks


def _result(body: models.Result, at: str) -> RemoteResult:
    status, said = ResultStatus(body["status"]), body.get("error")
    error = models.ResultError(message=said) if isinstance(said, str) else said
    for field, belongs in models.BELONGS.items():
        if status is not belongs and body.get(field) is not None:
            place = _member(at, field)
            raise Refused(
                422, "invalid_request", f"{place} belongs to the status {belongs}", field=place
            )
    until = _until(body, at) if status is ResultStatus.DEFERRED else None
    return RemoteResult(
        task_id=TaskId(body["task_id"].lower()),
        attempt=body.get("attempt", UNSAID),
        status=status,
        result=body.get("result"),
        error=None if error is None else _error(error),
        retry_after=None if error is None else error.get("retry_after"),
        until=until,
    )


def _until(body: models.Result, at: str) -> Sleep | EventWait:
    """Until when the task is handed back."""
    sleep, wait = body.get("sleep"), body.get("wait_for")
    if (sleep is None) == (wait is None):
        place = _member(at, "sleep")
        text = f"the status deferred takes either {place} or {_member(at, 'wait_for')}"
        raise Refused(422, "invalid_request", text, field=place)
    if sleep is not None:
        return Sleep(sleep["name"], sleep["seconds"])
    assert wait is not None
    return EventWait(wait["event"], wait["key"], wait.get("timeout_seconds"))


def _member(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _error(given: models.ResultError) -> TaskError:
    return TaskError(
        type=given.get("type", "Error"),
        message=given["message"],
        traceback=given.get("traceback"),
        retriable=given.get("retriable", True),
    )


def _report(worker_id: WorkerId, given: models.AttemptReport, most: int) -> Report:
    """What an attempt says. `PayloadRefused` for a step that no store may hold."""
    progress, cost = given.get("progress"), given.get("cost")
    return Report(
        TaskId(given["task_id"].lower()),
        given["attempt"],
        worker_id,
        progress=None if progress is None else Progress(**progress),
        cost=None if cost is None else Cost(**cost),
        logs=tuple(given.get("log", ())),
        steps=tuple(
            step_entry(each["name"], encoded(each.get("result"), most))
            for each in given.get("steps", ())
        ),
    )


def _shown(told: TakenResult) -> Json:
    return models.RESULT_ANSWER.write(told, whole=not told.is_accepted)
