"""The budgets of one store: set, seen and taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final
from uuid import uuid4

from holdfast.agents.budget_reading import AssumedWords, LimitWords, changed, read_key
from holdfast.agents.budget_records import (
    BUDGET,
    DAY,
    load_budget,
    put_budget,
    put_day,
    put_ledger,
)
from holdfast.agents.budgets import (
    SCHEDULE,
    Budget,
    Ledger,
    Limits,
    Period,
    Reservation,
    day_of,
    folded,
    month_of,
)
from holdfast.agents.executions_of import runs_among
from holdfast.agents.ledger import Account, BudgetKeeper
from holdfast.core.budget_state import BudgetPage, BudgetState, PeriodState
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.core.schedule_state import schedule_tag
from holdfast.core.task import Task, TaskId
from holdfast.core.usage import NOTHING_USED, Totals
from holdfast.errors import RecordConflict, ScheduleNotFound
from holdfast.filters import page_size
from holdfast.logs import EventLog
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.schedules.budgeting import LEDGER
from holdfast.schedules.series import SERIES, load_series

log = EventLog("holdfast.agents")

PAGE: Final = 500


class BudgetBook:
    """The verbs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keeper = BudgetKeeper(store)

    async def get(self, key: str) -> BudgetState | None:
        """A budget, and what has been used of it; None if there is none."""
        now = await self._store.now()
        accounts = await self._keeper.accounts([read_key(key)], now)
        return None if key not in accounts else _state(accounts[key], now)

    async def list(
        self, *, owner: str | None = None, after: str = "", limit: int = 100
    ) -> BudgetPage:
        """Budgets by key; with `owner` the one of that owner alone."""
        size, now = page_size(limit), await self._store.now()
        start = Record(BUDGET, after, 0, "", sort=after) if after else None
        found = await self._store.records(BUDGET, limit=size + 1, group=owner, after=start)
        accounts = await self._keeper.accounts([each.key for each in found[:size]], now)
        states = tuple(_state(accounts[key], now) for key in sorted(accounts))
        return BudgetPage(states, states[-1].key if len(found) > size else None)

    async def set(
        self,
        key: str,
        *,
        day: LimitWords | None = None,
        month: LimitWords | None = None,
        zone: str | None = None,
        assumed: AssumedWords | None = None,
    ) -> BudgetState:
        """Bound what the runs of an owner or of a schedule may use: `set("owner:ann", day={"runs":
        20}, month={"cost": 5.0})`. What is not given stays as it is; a period that is given
        replaces all its limits. A new budget counts what was used in this month as far as that is
        kept. Its zone is UTC unless given, of a schedule's that of its rule.
        """
        key = read_key(key)
        while True:
            record = await one_record(self._store, BUDGET, key)
            budget = Budget(key=key) if record is None else load_budget(record)
            if record is None:
                budget = replace(budget, zone=await self._zone_of(key))
            budget = changed(budget, day=day, month=month, zone=zone, assumed=assumed)
            puts = [put_budget(budget, 0 if record is None else record.version)]
            if record is None:
                puts += await self._opened(budget)
            try:
                await self._store.commit(Changes(uuid4().hex, records=puts))
            except RecordConflict:
                continue
            log.info("budget.set", budget=key, day=asdict(budget.day), month=asdict(budget.month))
            state = await self.get(key)
            if state is not None:  # else somebody has deleted it meanwhile
                return state

    async def delete(self, key: str) -> bool:
        """Forget a budget and what was used of it. False if there is none."""
        record = await one_record(self._store, BUDGET, read_key(key))
        if record is None:
            return False
        gone = [Delete(BUDGET, key), Delete(LEDGER, key)]
        await self._store.commit(Changes(uuid4().hex, records=gone))
        while days := await self._store.records(DAY, group=key, limit=PAGE):
            left = [Delete(DAY, each.key) for each in days]
            await self._store.commit(Changes(uuid4().hex, records=left))
        log.info("budget.deleted", budget=key)
        return True

    async def _zone_of(self, key: str) -> str:
        """Where a new budget's days begin. `ScheduleNotFound` for that of none."""
        if not key.startswith(SCHEDULE):
            return "UTC"
        name = key.removeprefix(SCHEDULE)
        record = await one_record(self._store, SERIES, name)
        if record is None:
            raise ScheduleNotFound(name)
        return load_series(record).rule.tz

    async def _opened(self, budget: Budget) -> Sequence[Put]:
        """The ledger of a new budget, with the runs of this month."""
        now = await self._store.now()
        which = _runs_since(budget, now)
        tasks: dict[TaskId, Task] = {}
        opened: dict[TaskId, Reservation] = {}
        async for task, run in runs_among(self._store, which):
            day = day_of(budget, task.created_at).name
            tasks[task.id] = task
            opened[task.id] = Reservation(run.schedule, day, NOTHING_USED)
        today = day_of(budget, now).name
        ledger = folded(Ledger(day=today, open=opened), tasks)
        days = [put_day(budget.key, day, used) for day, used in ledger.past.items()]
        return [put_ledger(budget.key, ledger, 0), *days]


def _runs_since(budget: Budget, now: datetime) -> TaskFilter:
    """What was fired for a budget since its month began."""
    first = day_of(budget, now).name[:7] + "-01"
    begin = datetime.fromisoformat(first).replace(tzinfo=month_of(budget, now).end.tzinfo)
    whose, _, name = budget.key.partition(":")
    if f"{whose}:" == SCHEDULE:
        return TaskFilter(tag=schedule_tag(name), created_after=begin)
    return TaskFilter(owner=name, created_after=begin)


def _state(account: Account, now: datetime) -> BudgetState:
    budget, ledger = account.budget, account.ledger
    assumed = budget.assumed
    return BudgetState(
        key=budget.key,
        zone=budget.zone,
        day=_period(day_of(budget, now), budget.day, ledger.today_in_all, ledger.held_today),
        month=_period(month_of(budget, now), budget.month, ledger.month, ledger.held_month),
        assumed_units=assumed.units,
        assumed_tokens=assumed.tokens,
        assumed_cost=assumed.cost,
    )


def _period(period: Period, limits: Limits, used: Totals, held: Totals) -> PeriodState:
    words: Mapping[str, float | None] = asdict(limits)
    return PeriodState(
        name=period.name,
        ends_at=period.end,
        runs=limits.runs,
        units=words["units"],
        tokens=limits.tokens,
        cost=words["cost"],
        used=used,
        reserved=held,
    )
