"""Budgets, and what has been used."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from holdfast.core.execution_answers import (
    BUDGET,
    USAGE,
    BudgetAnswer,
    BudgetDeleted,
    BudgetList,
    UsageAnswer,
)
from holdfast.server.access import BUDGETS, USED
from holdfast.server.agent_reach import checked_key, no_budget, read_day
from holdfast.server.answers import answer
from holdfast.server.models.agents import BudgetSearch, NewBudget, UsageSearch
from holdfast.server.models.tasks import NoQuery
from holdfast.server.routes.executions import reach_of
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape

routes = Routes("budgets")

ONE: Final = f"{BUDGETS}/{{budget:path}}"
PAGE: Final = 100


@routes(
    "GET",
    USED,
    "What runs have used",
    says="Of one `owner`, or of all, from the first day to the last (this month, unless given), in "
    "all and by day or by schedule. What is older than `retention` is known for owners who have a "
    "budget.",
    answers=UsageAnswer,
    query=Shape(UsageSearch),
)
async def get_usage(request: ApiRequest[Any]) -> Response:
    asked, reach = request.words, await reach_of(request)
    first, last = read_day("from", asked), read_day("to", asked)
    used = await reach.used(owner=asked.get("owner"), first=first, last=last)
    return answer(USAGE.write(used.report(asked.get("by"))))


@routes(
    "GET",
    BUDGETS,
    "List budgets, by key",
    says="With `owner` that of one owner. `next`, sent as `after`, brings more.",
    answers=BudgetList,
    query=Shape(BudgetSearch),
)
async def list_budgets(request: ApiRequest[BudgetSearch]) -> Response:
    asked = request.words
    page = await (await reach_of(request)).budgets(
        owner=asked.get("owner"), after=asked.get("after", ""), limit=asked.get("limit", PAGE)
    )
    return answer({"budgets": [BUDGET.write(each) for each in page.budgets], "next": page.next})


@routes("GET", ONE, "Look at one budget, and what has been used of it", answers=BudgetAnswer)
async def get_budget(request: ApiRequest[NoQuery]) -> Response:
    key = checked_key(request.named)
    return answer(BUDGET.write(await (await reach_of(request)).budget(key)))


@routes(
    "PUT",
    ONE,
    "Set a budget",
    says="`owner:NAME` or `schedule:NAME`. A run that would exceed it is not fired: it is skipped, "
    "and its schedule is paused until the period is over. A new budget counts what this month has "
    "used, as far as that is kept. The zone is UTC unless given, of a schedule's that of its rule; "
    "what else is left out has no limit.",
    answers=BudgetAnswer,
    takes=Shape(NewBudget),
    example={"day": {"runs": 20, "tokens": 200_000}, "month": {"cost": 5.0}, "zone": "UTC"},
)
async def set_budget(request: ApiRequest[NewBudget]) -> Response:
    key, wanted = checked_key(request.named), request.words
    state = await (await request.verbs()).budgets.set(
        key,
        day=wanted.get("day", {}),
        month=wanted.get("month", {}),
        zone=wanted.get("zone"),
        assumed=wanted.get("assumed", {}),
    )
    return answer(BUDGET.write(state))


@routes("DELETE", ONE, "Forget a budget, and what was used of it", answers=BudgetDeleted)
async def delete_budget(request: ApiRequest[NoQuery]) -> Response:
    key = checked_key(request.named)
    if not await (await request.verbs()).budgets.delete(key):
        raise no_budget(key)
    return answer({"key": key, "deleted": True})
