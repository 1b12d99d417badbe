"""Doing something to every task that matches. A dry run counts first."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from holdfast.core.query import TaskFilter
from holdfast.core.task_answers import ActionAnswer
from holdfast.server.access import TASKS
from holdfast.server.answers import answer
from holdfast.server.filters import filter_of
from holdfast.server.models.tasks import Action
from holdfast.server.problems import Refused
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape

routes = Routes("tasks")

EXAMPLE: Final = {
    "action": "cancel",
    "filter": {"queue": "mail", "status": ["queued"]},
    "dry_run": True,
}


@routes(
    "POST",
    f"{TASKS}/actions",
    "Cancel, retry or discard all matching tasks",
    says="`retry` and `discard` mean dead letters unless `status` says otherwise. `dry_run` "
    "counts what would change. `pace` (tasks a second) is for `retry`.",
    answers=ActionAnswer,
    takes=Shape(Action),
    example=EXAMPLE,
    refuses=(404, 409),
)
async def act(request: ApiRequest[Action]) -> Response:
    wanted = request.words
    action, pace = wanted["action"], wanted.get("pace")
    if pace is not None and action != "retry":
        raise Refused(409, "conflicting_options", "pace is for retry only", field="pace")
    which, dry_run = filter_of(wanted["filter"]), wanted.get("dry_run", False)
    return await done(request, action, which, pace=pace, dry_run=dry_run)


async def done(
    request: ApiRequest[Any], action: str, which: TaskFilter, *, pace: float | None, dry_run: bool
) -> Response:
    """Act, and say how many tasks that changed, or would change."""
    reach = await request.reach()
    match action:
        case "cancel":
            tasks = await reach.cancel_many(which, dry_run=dry_run)
        case "discard":
            tasks = await reach.discard(which, dry_run=dry_run)
        case _:
            tasks = await reach.replay(which, pace=pace, dry_run=dry_run)
    return answer({"action": action, "dry_run": dry_run, "tasks": tasks})
