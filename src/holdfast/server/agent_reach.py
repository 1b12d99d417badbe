"""What a token reaches of executions, budgets and usage; see `reach`.

For a bound token there are the executions within its bounds, the budgets of its owner and of the
schedules that it sees, and what these have used. Budgets bind the owner: such a token reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from holdfast.agents.budget_reading import read_key
from holdfast.agents.budgets import OWNER, SCHEDULE
from holdfast.agents.executions import filter_of
from holdfast.agents.usage_report import Used, used_by_runs
from holdfast.client import Client
from holdfast.core.budget_state import BudgetPage, BudgetState
from holdfast.core.execution import DELIVER
from holdfast.core.execution_answers import EXECUTION
from holdfast.core.query import TaskFilter
from holdfast.core.task import Json, State, TaskId
from holdfast.core.token import Token
from holdfast.errors import InvalidOption, ScheduleNotFound
from holdfast.server.problems import Refused
from holdfast.server.reach import Reach
from holdfast.server.schedule_reach import ScheduleReach

MOST_DELIVERIES: Final = 100


class AgentReach:
    """The verbs about executions, budgets and usage of one token."""

    def __init__(self, client: Client, token: Token, reach: Reach) -> None:
        self._client = client
        self._bounds = token.bounds
        self._tasks = reach
        self._schedules = ScheduleReach(client, token, reach)

    async def executions(
        self,
        *,
        owner: str | None,
        schedule: str | None,
        status: str | None,
        after: str | None,
        limit: int,
    ) -> Json:
        """A page of them, as JSON."""
        which = filter_of(owner=owner, schedule=schedule, status=status)
        within = self._bounds.within(which)
        page = await self._client.executions.page(within, after=after, limit=limit)
        return {
            "executions": [EXECUTION.write(each) for each in page.executions],
            "next": page.next,
        }

    async def execution(self, execution_id: str) -> Json:
        """One of them, with its deliveries."""
        task = await self._tasks.get(execution_id)
        return EXECUTION.write(await self._client.executions.told(task), whole=True)

    async def deliveries(self, execution_ids: Sequence[str]) -> Mapping[str, Counter[State]]:
        """How many deliveries of each of these executions are in which state. They are taken to be
        within its reach.
        """
        found = {}
        for each in execution_ids:
            which = TaskFilter(name=DELIVER, parent_id=TaskId(each))
            page = await self._client.list(which, limit=MOST_DELIVERIES)
            found[each] = Counter(task.state for task in page.tasks)
        return found

    async def used(self, *, owner: str | None, first: date | None, last: date | None) -> Used:
        """What was used of what is there for this token."""
        bounds, within = self._bounds, None
        mine = bounds.owner or owner
        if bounds.queues is not None or bounds.names is not None or mine != (owner or mine):
            within = bounds.within(TaskFilter(owner=owner))
        return await used_by_runs(
            self._client.store, owner=owner or mine, first=first, last=last, within=within
        )

    async def budget(self, key: str) -> BudgetState:
        state = await self._client.budgets.get(key) if await self._sees(key) else None
        if state is None:
            raise no_budget(key)
        return state

    async def budgets(self, *, owner: str | None, after: str, limit: int) -> BudgetPage:
        """A page of those that are there for this token."""
        mine = self._bounds.owner
        if mine is not None and owner not in (None, mine):
            return BudgetPage((), None)
        if not self._bounds.is_narrow:
            return await self._client.budgets.list(owner=owner, after=after, limit=limit)
        found: list[BudgetState] = []
        while True:
            page = await self._client.budgets.list(owner=owner, after=after, limit=limit)
            found += [each for each in page.budgets if await self._sees(each.key)]
            if page.next is None or len(found) >= limit:
                break
            after = page.next
        more = len(found) > limit or page.next is not None
        shown = tuple(found[:limit])
        return BudgetPage(shown, shown[-1].key if more and shown else None)

    async def _sees(self, key: str) -> bool:
        if not self._bounds.is_narrow:
            return True
        whole = self._bounds.queues is None and self._bounds.names is None
        if key.startswith(OWNER):
            return whole and key == f"{OWNER}{self._bounds.owner}"
        try:
            await self._schedules.get(key.removeprefix(SCHEDULE))
        except ScheduleNotFound:
            return False
        return True


def no_budget(key: str) -> Refused:
    return Refused(404, "budget_not_found", f"there is no budget {key!r}", budget=key)


def checked_key(key: str) -> str:
    """A budget's key; what is none is not there."""
    try:
        return read_key(key)
    except InvalidOption as error:
        raise Refused(404, "budget_not_found", str(error), budget=key) from None


def read_day(field: str, words: dict[str, Any]) -> date | None:
    """A day of a query."""
    text = words.get(field)
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidOption(field, f"there is no such day: {text!r}") from None
