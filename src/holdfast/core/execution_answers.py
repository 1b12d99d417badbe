"""The JSON of executions, budgets and usage; see `task_answers`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from holdfast.core.budget_state import BudgetState, PeriodState, UsageReport, UsageRow
from holdfast.core.execution import DeliveryState, Execution
from holdfast.core.json_form import From, JsonForm
from holdfast.core.schedule_answers import OriginWord
from holdfast.core.schedule_state import RunEnd
from holdfast.core.task import State
from holdfast.core.task_answers import Count, ErrorAnswer, ProgressAnswer, exact
from holdfast.core.usage import Totals


@exact
class DeliveryOfExecution(TypedDict):
    """The delivery of a result by one channel: a task of its own."""

    task_id: str
    channel: str
    status: State
    attempts: Count
    error: str | None
    delivered_at: datetime | None


DELIVERY = JsonForm(DeliveryOfExecution, DeliveryState)


@exact
class ExecutionAnswer(TypedDict):
    """A run of a schedule. `content` is what its handler made, `steps` what it said that it was
    doing. `units`, the tokens and `cost` (money) are what it has used, `estimated_units` what
    people expected. `deliveries` are there if one execution is asked for.
    """

    id: str
    schedule: str
    scheduled_for: datetime
    origin: OriginWord
    status: RunEnd
    task_status: Annotated[State, From("task_state")]
    task_type: Annotated[str, From("task_name")]
    owner: str | None
    title: str | None
    purpose: str | None
    chat_id: str | None
    message_id: str | None
    content: Any
    steps: list[str]
    progress: ProgressAnswer | None
    error: ErrorAnswer | None
    estimated_units: float | None
    units: Annotated[float, From(lambda one: one.usage.units)]
    tokens_in: Annotated[Count, From(lambda one: one.usage.tokens_in)]
    tokens_out: Annotated[Count, From(lambda one: one.usage.tokens_out)]
    cost: Annotated[float, From(lambda one: one.usage.cost)]
    attempt: Count
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deliveries: NotRequired[list[DeliveryOfExecution]]


EXECUTION = JsonForm(ExecutionAnswer, Execution)


@exact
class ExecutionList(TypedDict):
    """Executions, newest first. `next`, sent as `after`, brings those before; null: that is all. A
    page may be short, even empty, and yet not be the last.
    """

    executions: list[ExecutionAnswer]
    next: str | None


@exact
class TotalsAnswer(TypedDict):
    """What runs have used together; `cost` is money."""

    runs: Count
    units: float
    tokens_in: Count
    tokens_out: Count
    cost: float


TOTALS = JsonForm(TotalsAnswer, Totals)


@exact
class PeriodAnswer(TypedDict):
    """A day or a month of a budget, by its `name`: its limits, null where there is none, what was
    `used` by runs that have ended, and what is `reserved` for those that have not.
    """

    name: str
    ends_at: datetime
    runs: Count | None
    units: float | None
    tokens: Count | None
    cost: float | None
    used: TotalsAnswer
    reserved: TotalsAnswer


PERIOD = JsonForm(PeriodAnswer, PeriodState)


@exact
class AssumedAnswer(TypedDict):
    """What a run is expected to use of whose schedule nothing is known yet."""

    units: float
    tokens: Count
    cost: float


def _assumed(one: BudgetState) -> dict[str, float]:
    return {"units": one.assumed_units, "tokens": one.assumed_tokens, "cost": one.assumed_cost}


@exact
class BudgetAnswer(TypedDict):
    """A budget, and what has been used of it. Its periods begin at midnight of its `zone`."""

    key: str
    zone: str
    day: PeriodAnswer
    month: PeriodAnswer
    assumed: Annotated[AssumedAnswer, From(_assumed)]


BUDGET = JsonForm(BudgetAnswer, BudgetState)


@exact
class BudgetList(TypedDict):
    """Budgets by key. `next`, sent as `after`, brings more; null: that is all."""

    budgets: list[BudgetAnswer]
    next: str | None


@exact
class BudgetDeleted(TypedDict):
    """The budget is gone, and with it what was used of it."""

    key: str
    deleted: Literal[True]


@exact
class UsageRowAnswer(TypedDict):
    """What was used on one day, or by the runs of one schedule."""

    key: str
    runs: Annotated[Count, From("totals.runs")]
    units: Annotated[float, From("totals.units")]
    tokens_in: Annotated[Count, From("totals.tokens_in")]
    tokens_out: Annotated[Count, From("totals.tokens_out")]
    cost: Annotated[float, From("totals.cost")]


USAGE_ROW = JsonForm(UsageRowAnswer, UsageRow)

UsageAnswer = TypedDict(
    "UsageAnswer",
    {
        "owner": str | None,
        "from": Annotated[str, From("first")],
        "to": Annotated[str, From("last")],
        "zone": str,
        "totals": TotalsAnswer,
        "rows": list[UsageRowAnswer],
    },
)
UsageAnswer.__doc__ = """What runs have used that were fired on these days, both inside. A day
begins at midnight of `zone`. `rows` are by day or by schedule, as `by` says; empty without it."""
exact(UsageAnswer)
USAGE = JsonForm(UsageAnswer, UsageReport)
