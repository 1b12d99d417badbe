"""Deliveries: what became of the results that were to be brought to somebody."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.delivery import NAME, as_delivery, schedule_tag
from holdfast.core.delivery_answers import DELIVERY, DeliveryList
from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId
from holdfast.server.answers import answer
from holdfast.server.models.delivery import DeliverySearch
from holdfast.server.owned import owner_for
from holdfast.server.routing import ApiRequest, Routes
from holdfast.server.shape import Shape

routes = Routes("deliveries")


@routes(
    "GET",
    "/api/v1/deliveries",
    "List deliveries",
    says="Newest first: of one run (`execution`), of one schedule, of one owner. Each is a task, "
    "and is cancelled, retried and explained by its id like any other.",
    answers=DeliveryList,
    query=Shape(DeliverySearch),
)
async def list_deliveries(request: ApiRequest[DeliverySearch]) -> Response:
    words = request.words
    schedule, execution, status = (words.get(w) for w in ("schedule", "execution", "status"))
    which = TaskFilter(
        name=NAME,
        owner=owner_for(request.token, words.get("owner")),
        parent_id=None if execution is None else TaskId(str(execution).lower()),
        tag=None if schedule is None else schedule_tag(str(schedule)),
        states=None if status is None else frozenset({State(str(status))}),
    )
    page = await (await request.verbs()).list(
        which,
        limit=words.get("limit", 100),
        after=words.get("after"),
    )
    shown = [DELIVERY.write(as_delivery(task)) for task in page.tasks]
    return answer({"deliveries": shown, "next": page.next})
