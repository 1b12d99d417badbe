"""Looking at tasks, and steering one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from starlette.responses import Response

from holdfast.core.query import Order, Page, TaskFilter
from holdfast.core.task import Task
from holdfast.core.task_answers import (
    HISTORY,
    TREE,
    WHY,
    BriefTask,
    HistoryAnswer,
    TaskAnswer,
    TaskPage,
    TreeNode,
    WhyAnswer,
)
from holdfast.core.token import Scope
from holdfast.core.tree import children_in
from holdfast.errors import InvalidOption
from holdfast.server.access import TASKS
from holdfast.server.answers import answer
from holdfast.server.filters import filter_of
from holdfast.server.models.tasks import ChildSearch, Look, NoQuery, TaskSearch
from holdfast.server.pages import newest_of, read_page
from holdfast.server.problems import Refused
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape

routes = Routes("tasks")

ONE: Final = f"{TASKS}/{{task_id}}"
PAGE: Final = 100
LOOK: Final = Shape(Look)
STEERED: Final = (TaskAnswer, BriefTask)
OWN_ONLY: Final = (
    "With `submit` alone a token steers what it submitted itself, or what is its owner's; without "
    "`read` the answer is brief."
)


@routes(
    "GET",
    TASKS,
    "List tasks, a page at a time",
    answers=TaskPage,
    query=Shape(TaskSearch),
    refuses=(404, 409),
)
async def list_tasks(request: ApiRequest[TaskSearch]) -> Response:
    return await page_of(request, filter_of(request.words), request.words)


async def page_of(
    request: ApiRequest[Any],
    which: TaskFilter,
    words: TaskSearch,
    shown: Callable[[Page], Page] = lambda page: page,
) -> Response:
    """A page of the tasks that match, as far as they are `shown`."""
    wants_traceback = wants(request)
    reach = await request.reach()
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
    view = await request.service.view(with_traceback=wants_traceback)
    return answer(view.page(shown(page)))


@routes(
    "GET",
    ONE,
    "Look at one task",
    says="`traceback=true` shows the error's traceback, to tokens with the scope admin.",
    answers=TaskAnswer,
    query=LOOK,
)
async def get_task(request: ApiRequest[Look]) -> Response:
    wants_traceback = wants(request)
    task = await (await request.reach()).get(request.named)
    view = await request.service.view(with_traceback=wants_traceback)
    return answer(view.task(task))


def wants(request: ApiRequest[Any]) -> bool:
    """Whether the traceback is asked for; 403 for those who may not see it."""
    asked: bool = request.words.get("traceback") == "true"
    if asked and Scope.ADMIN not in request.token.scopes:
        raise Refused(403, "insufficient_scope", "tracebacks are for tokens with the scope admin")
    return asked


@routes(
    "DELETE",
    ONE,
    "Cancel a task",
    says="The same as `POST …/cancel`. The task stays in the history, as cancelled.",
    answers=STEERED,
    refuses=(409,),
)
async def delete_task(request: ApiRequest[NoQuery]) -> Response:
    return await cancel_task(request)


@routes(
    "POST",
    f"{ONE}/cancel",
    "Cancel a task",
    says=f"At once if it has not started; a running one is asked to stop. {OWN_ONLY}",
    answers=STEERED,
    refuses=(409,),
)
async def cancel_task(request: ApiRequest[NoQuery]) -> Response:
    return await _shown(request, await (await request.reach()).cancel(request.named))


@routes(
    "POST",
    f"{ONE}/retry",
    "Start a task again",
    says=f"One that has ended starts anew; one that waits for its time starts now. {OWN_ONLY}",
    answers=STEERED,
    refuses=(409,),
)
async def retry_task(request: ApiRequest[NoQuery]) -> Response:
    try:
        return await _shown(request, await (await request.reach()).retry(request.named))
    except InvalidOption as error:
        # Nothing in the request is wrong: another task stands in the way.
        raise Refused(409, "unique_key_taken", str(error)) from None


@routes(
    "GET",
    f"{ONE}/attempts",
    "Every attempt and event of a task",
    says="Of a very long history the newest 4 MiB of attempts and of events.",
    answers=HistoryAnswer,
    query=LOOK,
)
async def get_attempts(request: ApiRequest[Look]) -> Response:
    whole, task_id = wants(request), request.named
    history = await (await request.reach()).history(task_id)
    return answer(HISTORY.write(newest_of(history), whole=whole, task_id=task_id.strip().lower()))


@routes(
    "GET",
    f"{ONE}/children",
    "The children of a task, a page at a time",
    says="Oldest first, unless `sort` says otherwise.",
    answers=TaskPage,
    query=Shape(ChildSearch),
    refuses=(409,),
)
async def get_children(request: ApiRequest[ChildSearch]) -> Response:
    parent = await (await request.reach()).get(request.named)
    words = {"sort": "created_at", **request.words, "parent_id": parent.id}
    return await page_of(request, filter_of(words), cast("TaskSearch", words), children_in)


@routes(
    "GET",
    f"{ONE}/tree",
    "A task with its children, their children and so on",
    says="The first 1,000 tasks, level by level; `left_out` counts the rest.",
    answers=TreeNode,
)
async def get_tree(request: ApiRequest[NoQuery]) -> Response:
    return answer(TREE.write(await (await request.reach()).tree(request.named)))


@routes("GET", f"{ONE}/why", "Why a task is not running", answers=WhyAnswer)
async def get_why(request: ApiRequest[NoQuery]) -> Response:
    return answer(WHY.write(await (await request.reach()).why(request.named)))


async def _shown(request: ApiRequest[NoQuery], task: Task) -> Response:
    return answer(await request.service.shown(request.token, task))
