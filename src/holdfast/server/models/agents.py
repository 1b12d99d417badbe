"""Requests about executions, budgets and usage."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, with_config
from typing_extensions import TypedDict

from holdfast.filters import MOST_PER_PAGE
from holdfast.server.models import words
from holdfast.server.models.schedules import Units, Zone
from holdfast.server.shape import CLOSED, SPELLED

DAY: Final = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
MOST_COUNTED: Final = 10**15

Day = Annotated[str, StringConstraints(pattern=DAY, strict=True)]
Count = Annotated[int, Field(ge=0, le=MOST_COUNTED)]
Id = Annotated[
    str, StringConstraints(pattern="^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$", strict=True)
]
Limit = Annotated[int, Field(ge=1, le=MOST_PER_PAGE)]


@with_config(SPELLED)
class ExecutionSearch(TypedDict, total=False):
    """The query of a list of executions."""

    owner: words.Name
    schedule: words.Name
    status: Literal["running", "success", "failure", "cancelled"]
    after: Id
    limit: Limit


@with_config(SPELLED)
class BudgetSearch(TypedDict, total=False):
    """The query of a list of budgets."""

    owner: words.Name
    after: words.Key
    limit: Limit


@with_config(CLOSED)
class PeriodLimits(TypedDict, total=False):
    """What may be used in one period; what is left out has no limit. `cost` is money."""

    runs: Count | None
    units: Units | None
    tokens: Count | None
    cost: Units | None


@with_config(CLOSED)
class RunEstimate(TypedDict, total=False):
    """What a run is expected to use of whose schedule nothing is known yet."""

    units: Units
    tokens: Count
    cost: Units


@with_config(CLOSED)
class NewBudget(TypedDict, total=False):
    """The limits of a day and of a month, which begin at midnight of the `zone`."""

    day: PeriodLimits
    month: PeriodLimits
    zone: Zone
    assumed: RunEstimate


UsageSearch = TypedDict(
    "UsageSearch",
    {"owner": words.Name, "from": Day, "to": Day, "by": Literal["day", "schedule"]},
    total=False,
)
UsageSearch.__doc__ = "Whose usage, from which day to which."
with_config(SPELLED)(UsageSearch)
