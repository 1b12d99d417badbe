"""Executions: the runs that schedules fired, what they used, and where their results went."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from starlette.datastructures import QueryParams

from holdfast.agents.executions import WORDS
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import Json, State
from holdfast.dashboard.page import READ, Page, Shown, View
from holdfast.dashboard.problems import NONE, problems_of
from holdfast.errors import HoldfastError
from holdfast.server.models.agents import ExecutionSearch
from holdfast.server.problems import Refused
from holdfast.server.shape import Shape

page = Page("/executions", "executions.html", "Executions", rule=READ)

SEARCH: Final = Shape(ExecutionSearch)
PAGE: Final = 25
MOST: Final = 100
FILTERS: Final = ("schedule", "owner", "status")


class Brought(NamedTuple):
    """How many deliveries of an execution got through, failed, or are under way."""

    delivered: int
    failed: int
    waiting: int


@page.read
async def read(view: View) -> Shown:
    given = QueryParams([pair for pair in view.query.multi_items() if pair[1].strip()])
    shown: Shown = {
        "statuses": WORDS,
        "given": given,
        "filters": {name: given[name] for name in FILTERS if name in given},
        "problems": NONE,
        "executions": [],
        "next": None,
        "after": None,
    }
    try:
        asked = SEARCH.read_query(given)
        return shown | await _found(view, asked)
    except (Refused, HoldfastError) as error:
        return shown | {"problems": problems_of(error, FILTERS), "status": 422}


async def _found(view: View, asked: ExecutionSearch) -> Shown:
    reach = await view.agents()
    after = asked.get("after")
    found: Any = await reach.executions(
        owner=asked.get("owner"),
        schedule=asked.get("schedule"),
        status=asked.get("status"),
        after=after,
        limit=min(asked.get("limit", PAGE), MOST),
    )
    executions = found["executions"]
    counted = await reach.deliveries(
        [each["id"] for each in executions if each["task_status"] in TERMINAL]
    )
    return {
        "executions": executions,
        "brought": {each: _brought(states) for each, states in counted.items()},
        "took": took,
        "next": found["next"],
        "after": after,
    }


def _brought(states: Mapping[State, int]) -> Brought:
    delivered = states.get(State.COMPLETED, 0)
    failed = sum(number for state, number in states.items() if state in TERMINAL) - delivered
    return Brought(delivered, failed, sum(states.values()) - delivered - failed)


def took(execution: Mapping[str, Json]) -> float | None:
    """Seconds that it ran, if it is over."""
    started, finished = execution["started_at"], execution["finished_at"]
    if not isinstance(started, datetime) or not isinstance(finished, datetime):
        return None
    return (finished - started).total_seconds()
