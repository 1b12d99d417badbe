"""A budget as it is told to people: its limits, and what has been used and reserved of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from holdfast.core.usage import Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodState:
    """One period of a budget. A limit that is None is none. `used` is what runs have used that have
    ended, `reserved` what those are expected to use that have not.
    """

    name: str
    ends_at: datetime
    runs: int | None
    units: float | None
    tokens: int | None
    cost: float | None
    used: Totals
    reserved: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """`assumed_…` is what a run is expected to use of whose schedule nothing is known yet."""

    key: str
    zone: str
    day: PeriodState
    month: PeriodState
    assumed_units: float
    assumed_tokens: int
    assumed_cost: float


class BudgetPage(NamedTuple):
    """Budgets by key; `next`, passed as `after`, brings those after."""

    budgets: tuple[BudgetState, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """What was used on one day, or by one schedule."""

    key: str
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """What the runs have used that were fired from the first day to the last. `zone` is where days
    begin and end. `rows` are by day, or by schedule; none if that was not asked for.
    """

    owner: str | None
    first: str
    last: str
    zone: str
    totals: Totals
    rows: tuple[UsageRow, ...] = ()
