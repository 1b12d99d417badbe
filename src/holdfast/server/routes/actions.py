"""Doing something to every task that matches. A dry run counts first."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.query import TaskFilter
from holdfast.core.task_answers import ActionAnswer
from holdfast.server.access import TASKS
from holdfast.server.answers import answer
from holdfast.server.bodies import read_json
from holdfast.server.documented import documented
from holdfast.server.filters import filter_of
from holdfast.server.models.tasks import Action
from holdfast.server.problems import Refused
from holdfast.server.reach import Reach
from holdfast.server.service import service_of
from holdfast.server.shape import Shape

router = APIRouter(tags=["tasks"])

ACTION = Shape(Action)
EXAMPLE: Final = {
    "action": "cancel",
    "filter": {"queue": "mail", "status": ["queued"]},
    "dry_run": True,
}


@router.post(
    f"{TASKS}/actions",
    **documented(
        "Cancel, retry or discard all matching tasks",
        says=(
            "`retry` and `discard` mean dead letters unless `status` says otherwise. `dry_run` "
            "counts what would change. `pace` (tasks a second) is for `retry`."
        ),
        answers=ActionAnswer,
        takes=ACTION,
        example=EXAMPLE,
        refuses=(404, 409),
    ),
)
async def act(request: Request) -> Response:
    wanted = ACTION.read(await read_json(request))
    action, pace = wanted["action"], wanted.get("pace")
    if pace is not None and action != "retry":
        raise Refused(409, "conflicting_options", "pace is for retry only", field="pace")
    reach = await service_of(request).reach(request)
    which, dry_run = filter_of(wanted["filter"]), wanted.get("dry_run", False)
    tasks = await done(reach, action, which, pace=pace, dry_run=dry_run)
    return answer({"action": action, "dry_run": dry_run, "tasks": tasks})


async def done(
    reach: Reach, action: str, which: TaskFilter, *, pace: float | None, dry_run: bool
) -> int:
    """How many tasks the action changed, or would change."""
    match action:
        case "cancel":
            return await reach.cancel_many(which, dry_run=dry_run)
        case "discard":
            return await reach.discard(which, dry_run=dry_run)
        case _:
            return await reach.replay(which, pace=pace, dry_run=dry_run)
