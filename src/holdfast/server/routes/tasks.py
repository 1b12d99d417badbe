"""Looking at tasks, and steering one of them."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import Task
from holdfast.core.task_answers import (
    HISTORY,
    WHY,
    BriefTask,
    HistoryAnswer,
    TaskAnswer,
    TaskPage,
    WhyAnswer,
)
from holdfast.errors import InvalidOption
from holdfast.server.access import TASKS
from holdfast.server.answers import answer
from holdfast.server.documented import TASK_ID, documented
from holdfast.server.filters import filter_of
from holdfast.server.models.tasks import Look, NoQuery, TaskSearch
from holdfast.server.pages import newest_of, read_page
from holdfast.server.problems import Refused
from holdfast.server.service import is_admin, service_of
from holdfast.server.shape import Shape

router = APIRouter(tags=["tasks"])

ONE: Final = f"{TASKS}/{{task_id}}"
PAGE: Final = 100
SEARCH = Shape(TaskSearch)
LOOK = Shape(Look)
PLAIN = Shape(NoQuery)
STEERED: Final = (TaskAnswer, BriefTask)
OWN_ONLY: Final = (
    "With `submit` alone a token steers what it submitted itself, or what is its owner's; without "
    "`read` the answer is brief."
)


@router.get(
    TASKS,
    **documented(
        "List tasks, a page at a time", answers=TaskPage, query=SEARCH, refuses=(404, 409)
    ),
)
async def list_tasks(request: Request) -> Response:
    words = SEARCH.read_query(request.query_params)
    return await page_of(request, filter_of(words), words)


async def page_of(request: Request, which: TaskFilter, words: TaskSearch) -> Response:
    """A page of the tasks that match."""
    wants_traceback = wants(request, words)
    service = service_of(request)
    reach = await service.reach(request)
    try:
        page = await read_page(
            reach,
            which,
            limit=words.get("limit", PAGE),
            after=words.get("cursor"),
            order=Order(words.get("sort", Order.NEWEST)),
        )
    except InvalidOption as error:
        if error.option != "after":
            raise
        raise Refused(
            409,
            "cursor_of_another_list",
            "this cursor belongs to a list that is sorted in another way; begin anew without it",
            field="cursor",
        ) from None
    view = await service.view(with_traceback=wants_traceback)
    return answer(view.page(page))


@router.get(
    ONE,
    **documented(
        "Look at one task",
        says="`traceback=true` shows the error's traceback, to tokens with the scope admin.",
        answers=TaskAnswer,
        query=LOOK,
        refuses=(404,),
        paths=TASK_ID,
    ),
)
async def get_task(request: Request) -> Response:
    wants_traceback = wants(request, LOOK.read_query(request.query_params))
    service = service_of(request)
    task = await (await service.reach(request)).get(request.path_params["task_id"])
    view = await service.view(with_traceback=wants_traceback)
    return answer(view.task(task))


def wants(request: Request, words: Look) -> bool:
    """Whether the traceback is asked for; 403 for those who may not see it."""
    asked = words.get("traceback") == "true"
    if asked and not is_admin(request):
        raise Refused(403, "insufficient_scope", "tracebacks are for tokens with the scope admin")
    return asked


@router.delete(
    ONE,
    **documented(
        "Cancel a task",
        says="The same as `POST …/cancel`. The task stays in the history, as cancelled.",
        answers=STEERED,
        query=PLAIN,
        refuses=(404, 409),
        paths=TASK_ID,
    ),
)
async def delete_task(request: Request) -> Response:
    return await cancel_task(request)


@router.post(
    f"{ONE}/cancel",
    **documented(
        "Cancel a task",
        says=f"At once if it has not started; a running one is asked to stop. {OWN_ONLY}",
        answers=STEERED,
        query=PLAIN,
        refuses=(404, 409),
        paths=TASK_ID,
    ),
)
async def cancel_task(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    reach = await service_of(request).reach(request)
    return await _shown(request, await reach.cancel(request.path_params["task_id"]))


@router.post(
    f"{ONE}/retry",
    **documented(
        "Start a task again",
        says=f"One that has ended starts anew; one that waits for its retry starts now. {OWN_ONLY}",
        answers=STEERED,
        query=PLAIN,
        refuses=(404, 409),
        paths=TASK_ID,
    ),
)
async def retry_task(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    return await _shown(request, await retried(request))


async def retried(request: Request) -> Task:
    """Start the task in the path again."""
    reach = await service_of(request).reach(request)
    try:
        return await reach.retry(request.path_params["task_id"])
    except InvalidOption as error:
        # Nothing in the request is wrong: another task stands in the way.
        raise Refused(409, "unique_key_taken", str(error)) from None


@router.get(
    f"{ONE}/attempts",
    **documented(
        "Every attempt and event of a task",
        says="Of a very long history the newest 4 MiB of attempts and of events.",
        answers=HistoryAnswer,
        query=LOOK,
        refuses=(404,),
        paths=TASK_ID,
    ),
)
async def get_attempts(request: Request) -> Response:
    wants_traceback = wants(request, LOOK.read_query(request.query_params))
    service = service_of(request)
    task_id: str = request.path_params["task_id"]
    history = await (await service.reach(request)).history(task_id)
    return answer(
        HISTORY.write(newest_of(history), whole=wants_traceback, task_id=task_id.strip().lower())
    )


@router.get(
    f"{ONE}/why",
    **documented(
        "Why a task is not running",
        answers=WhyAnswer,
        query=PLAIN,
        refuses=(404,),
        paths=TASK_ID,
    ),
)
async def get_why(request: Request) -> Response:
    PLAIN.read_query(request.query_params)
    reach = await service_of(request).reach(request)
    return answer(WHY.write(await reach.why(request.path_params["task_id"])))


async def _shown(request: Request, task: Task) -> Response:
    return answer(await service_of(request).shown(request, task))
