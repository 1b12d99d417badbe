"""Executions: what schedules have run, what came of it and what it used."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from holdfast.core.execution_answers import ExecutionAnswer, ExecutionList
from holdfast.server.access import EXECUTIONS
from holdfast.server.agent_reach import AgentReach
from holdfast.server.answers import answer
from holdfast.server.models.agents import ExecutionSearch
from holdfast.server.models.tasks import NoQuery
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape

routes = Routes("executions")

PAGE: Final = 100


async def reach_of(request: ApiRequest[Any]) -> AgentReach:
    """The verbs about executions, budgets and usage, as far as the token reaches."""
    return AgentReach(await request.verbs(), request.token, await request.reach())


@routes(
    "GET",
    EXECUTIONS,
    "List executions, newest first",
    says="The runs that schedules fired: of one `owner` or `schedule`, with one `status`, or all. "
    "`next`, sent as `after`, brings those before; a page may be short and yet not the last.",
    answers=ExecutionList,
    query=Shape(ExecutionSearch),
)
async def list_executions(request: ApiRequest[ExecutionSearch]) -> Response:
    asked, reach = request.words, await reach_of(request)
    page = await reach.executions(
        owner=asked.get("owner"),
        schedule=asked.get("schedule"),
        status=asked.get("status"),
        after=asked.get("after"),
        limit=asked.get("limit", PAGE),
    )
    return answer(page)


@routes(
    "GET",
    f"{EXECUTIONS}/{{task_id}}",
    "Look at one execution",
    says="Its content, the steps of its progress, what it used, and its deliveries. Its id is that "
    "of its task.",
    answers=ExecutionAnswer,
)
async def get_execution(request: ApiRequest[NoQuery]) -> Response:
    return answer(await (await reach_of(request)).execution(request.named))
