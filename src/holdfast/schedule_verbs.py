"""The verbs of schedules, and of what their runs use. Most callers need none of them, so what they
need is imported when it is asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from holdfast.definitions.new_tasks import TaskMaker
from holdfast.definitions.registry import Registry
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.settings import Settings

if TYPE_CHECKING:
    from datetime import date

    from holdfast.agents.budget_book import BudgetBook
    from holdfast.agents.executions import Executions
    from holdfast.core.budget_state import UsageReport
    from holdfast.schedules.book import Book


class ScheduleVerbs:
    """A part of the client."""

    store: Store
    dispatcher: Dispatcher
    registry: Registry
    settings: Settings
    _maker: TaskMaker

    @cached_property
    def schedules(self) -> Book:
        """The verbs of schedules."""
        from holdfast.companions import (  # noqa: PLC0415
            budgets_of,
            companions_of,
        )
        from holdfast.schedules.book import Book  # noqa: PLC0415

        return Book(
            self.store,
            self.dispatcher,
            self.registry,
            self.settings,
            self._maker,
            companions_of(self.settings),
            budgets_of(self.store, self.settings),
        )

    @cached_property
    def budgets(self) -> BudgetBook:
        """The verbs of budgets."""
        from holdfast.agents.budget_book import BudgetBook  # noqa: PLC0415

        return BudgetBook(self.store)

    @cached_property
    def executions(self) -> Executions:
        """The runs that schedules fired."""
        from holdfast.agents.executions import Executions  # noqa: PLC0415

        return Executions(self.store)

    async def usage(
        self,
        *,
        owner: str | None = None,
        first: date | None = None,
        last: date | None = None,
        by: Literal["day", "schedule"] | None = None,
    ) -> UsageReport:
        """What the runs of an owner, or of everybody, have used from the first day to the last:
        since this month began, unless given. Days are those of the owner's budget, if there is one,
        which outlives the tasks; else of UTC.
        """
        from holdfast.agents.usage_report import used_by_runs  # noqa: PLC0415

        used = await used_by_runs(self.store, owner=owner, first=first, last=last)
        return used.report(by)
