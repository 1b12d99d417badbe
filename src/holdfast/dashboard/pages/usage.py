"""What runs have used, day by day and by schedule, and what budgets leave of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

from starlette.datastructures import QueryParams

from holdfast.core.budget_state import PeriodState, UsageReport
from holdfast.core.usage import NOTHING, Totals
from holdfast.dashboard.drawing import Column, columns
from holdfast.dashboard.page import READ, STEER_ALL, Page, Shown, View
from holdfast.dashboard.problems import NONE, problems_of
from holdfast.errors import HoldfastError
from holdfast.server.agent_reach import read_day
from holdfast.server.models.agents import BudgetSearch, UsageSearch
from holdfast.server.problems import Refused
from holdfast.server.shape import Shape

page = Page("/usage", "usage.html", "Usage", rule=READ, is_live=False)

SEARCH: Final = Shape(UsageSearch)
BUDGETS: Final = Shape(BudgetSearch)
MEASURES: Final = {
    "cost": "Money",
    "runs": "Runs",
    "units": "Units",
    "tokens": "Tokens",
}
FIELDS: Final = ("owner", "from", "to", "measure")
MOST: Final = 50


class Share(NamedTuple):
    """What is used of one limit of a budget."""

    name: str
    used: float
    held: float
    limit: float

    @property
    def left(self) -> float:
        return max(0.0, self.limit - self.used - self.held)


@page.read
async def read(view: View) -> Shown:
    given = QueryParams([pair for pair in view.query.multi_items() if pair[1].strip()])
    shown: Shown = {
        "given": given,
        "measures": MEASURES,
        "measure": given.get("measure", "cost"),
        "may_set": view.may(STEER_ALL),
        "is_bound": view.token.bounds.owner is not None,
        "problems": NONE,
        "report": None,
        "budgets": [],
        "next": None,
        "shares": shares,
    }
    try:
        return shown | await _budgets(view, given) | await _used(view, given)
    except (Refused, HoldfastError) as error:
        return shown | {"problems": problems_of(error, FIELDS), "status": 422}


async def _used(view: View, given: QueryParams) -> Shown:
    measure = given.get("measure", "cost")
    if measure not in MEASURES:
        said = f"expected {', '.join(MEASURES)}, got {measure!r:.60}"
        raise Refused(422, "invalid_request", said, field="measure")
    ours = [pair for pair in given.multi_items() if pair[0] in ("owner", "from", "to")]
    asked: Any = SEARCH.read_query(QueryParams(ours))
    reach = await view.agents()
    first, last = read_day("from", asked), read_day("to", asked)
    used = await reach.used(owner=asked.get("owner"), first=first, last=last)
    by_day, by_schedule = used.report("day"), used.report("schedule")
    days = _each_day(by_day)
    return {
        "report": by_day,
        "days": days,
        "bars": _bars(days, measure),
        "schedules": sorted(by_schedule.rows, key=lambda row: -_of(row.totals, measure)),
    }


async def _budgets(view: View, given: QueryParams) -> Shown:
    ours = [pair for pair in given.multi_items() if pair[0] in ("owner", "after")]
    asked = BUDGETS.read_query(QueryParams(ours))
    reach = await view.agents()
    found = await reach.budgets(owner=asked.get("owner"), after=asked.get("after", ""), limit=MOST)
    return {"budgets": found.budgets, "next": found.next}


def _each_day(report: UsageReport) -> list[tuple[str, Totals]]:
    """Every day of the report, also those on which nothing ran."""
    known = {row.key: row.totals for row in report.rows}
    first, last = date.fromisoformat(report.first), date.fromisoformat(report.last)
    names = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
    return [(name, known.get(name, NOTHING)) for name in names]


def _bars(days: Sequence[tuple[str, Totals]], measure: str) -> list[Column]:
    return columns([(name, _of(totals, measure)) for name, totals in days])


def _of(totals: Totals, measure: str) -> float:
    return float(getattr(totals, measure))


def shares(period: PeriodState) -> list[Share]:
    """The limits that a period has, and what is used of each."""
    limits = {"runs": period.runs, "units": period.units, "tokens": period.tokens,
              "cost": period.cost}  # fmt: skip
    return [
        Share(name, _of(period.used, name), _of(period.reserved, name), limit)
        for name, limit in limits.items()
        if limit is not None
    ]
