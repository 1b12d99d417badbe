"""What runs use: units of a product's own, tokens of a model, and money.

A task reports units and tokens while it runs (`Cost`). Money, and what durable steps have paid for,
stands in its result: `{"content": …, "usage": {"units", "tokens_in", "tokens_out", "cost"}}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from holdfast.core.shown import decoded
from holdfast.core.task import Json, State, Task

DIGITS: Final = 9
"""Money and units are added up to so many digits, so that ten times 0.1 is 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one run has used. `cost` is money, in whatever currency the product counts."""

    units: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            units=round(self.units + other.units, DIGITS),
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cost=round(self.cost + other.cost, DIGITS),
        )


NOTHING_USED: Final = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What several runs have used together."""

    runs: int = 0
    units: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def usage(self) -> Usage:
        return Usage(
            units=self.units,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost=self.cost,
        )

    def __add__(self, other: Totals) -> Totals:
        return totals_of(self.runs + other.runs, self.usage + other.usage)


NOTHING: Final = Totals()


def totals_of(runs: int, usage: Usage) -> Totals:
    """So many runs that have used this together."""
    return Totals(
        runs=runs,
        units=usage.units,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        cost=usage.cost,
    )


def usage_in(result: Json) -> Usage | None:
    """The usage that a result tells of; None if it tells of none. A worker in another language may
    have written it: what is no number from zero counts as nothing.
    """
    told = result.get("usage") if isinstance(result, dict) else None
    if not isinstance(told, dict):
        return None
    return Usage(
        units=_number(told.get("units")),
        tokens_in=int(_number(told.get("tokens_in"))),
        tokens_out=int(_number(told.get("tokens_out"))),
        cost=_number(told.get("cost")),
    )


def used_by(task: Task) -> Usage:
    """What a task has used so far. Units and tokens are what it reported or what its result tells,
    whichever is more: attempts that failed have only reported, and of steps that an earlier attempt
    had paid for the last report may be lost with it.
    """
    told = usage_in(decoded(task.result)) or NOTHING_USED
    return Usage(
        units=max(task.cost.units, told.units),
        tokens_in=max(task.cost.tokens_in, told.tokens_in),
        tokens_out=max(task.cost.tokens_out, told.tokens_out),
        cost=told.cost,
    )


def tells_its_cost(task: Task) -> bool:
    """Whether the money that a task has used is known: it completed, or never began."""
    return task.state is State.COMPLETED or task.attempt == 0


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return max(0.0, float(value))
