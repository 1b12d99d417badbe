"""Budgets, as far as whoever fires a schedule must know of them.

A run is reserved in the very commit that fires it, over the version of what was reserved before. So
however many fire at once, and in whatever processes, none of them exceeds a budget: who loses the
race for that version reads again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from holdfast.core.record import Put
from holdfast.core.task import NewTask, TaskId
from holdfast.schedules.series import Series

LEDGER: Final = "ledger"
"""The kind of the records by which those who reserve know of each other."""


class Wanted(NamedTuple):
    """Runs of a series that are to be fired, by the ids of their tasks, the first one first."""

    series: Series
    task_ids: Sequence[TaskId]


class OverBudget(NamedTuple):
    """Why runs are not fired: they would exceed this budget, whose period lasts `until` then."""

    budget: str
    reason: str
    until: datetime


class Verdict(NamedTuple):
    """How many of the wanted runs may be fired: the first ones. `over` says why not the others."""

    allowed: int
    over: OverBudget | None = None


class Reserved(NamedTuple):
    """The verdicts, in the order of what was wanted; `records` must be part of the commit that
    fires the runs, `notices` are tasks that tell people what was not fired.
    """

    verdicts: Sequence[Verdict] = ()
    records: Sequence[Put] = ()
    notices: Sequence[NewTask] = ()


class Budgets(Protocol):
    """Keeps runs within what their owners may use."""

    async def reserve(self, wanted: Sequence[Wanted], now: datetime) -> Reserved | None:
        """Say which runs may be fired; None if no budget concerns any of them. The commit meets a
        `RecordConflict` of the kind `LEDGER` if somebody else has reserved meanwhile: ask again.
        """
        ...

    async def release(self, fired: Sequence[Wanted]) -> None:
        """These runs were reserved, and then made no task."""
        ...
