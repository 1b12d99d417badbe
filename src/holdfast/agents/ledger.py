"""Reserves runs in the ledgers of their budgets (`schedules.budgeting`).

Whoever reads a ledger next counts what its runs have used that ended meanwhile: no end of a task
has to be watched, whatever language its worker is written in. Without budgets there is one small
read for all that is fired together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from holdfast.agents.budget_records import (
    BUDGET,
    DAY,
    day_key,
    load_budget,
    load_day,
    load_ledger,
    put_day,
    put_ledger,
)
from holdfast.agents.budgets import (
    OWNER,
    SCHEDULE,
    Budget,
    Ledger,
    added,
    day_of,
    estimated,
    folded,
    in_words,
    must_look,
    no_room,
    released,
    reserved,
    rolled,
)
from holdfast.core.record import Changes, Put, Record
from holdfast.core.task import NewTask, Task, TaskId
from holdfast.core.usage import Usage
from holdfast.errors import RecordConflict
from holdfast.flow.results import read_tasks
from holdfast.ports.store import Store
from holdfast.schedules.budgeting import LEDGER, OverBudget, Reserved, Verdict, Wanted
from holdfast.schedules.series import Series

NoticeTasks = Callable[[Series, OverBudget], Sequence[NewTask]]
"""The tasks that tell people that a schedule is paused, stored in the commit that pauses it."""

AT_ONCE: Final = 1000
SHORTLY_BEFORE: Final = timedelta(microseconds=1)
"""So that a run at the very beginning of the next period is not left out."""


class Account:
    """A budget and its ledger, while runs are reserved."""

    def __init__(self, budget: Budget, record: Record | None, now: datetime) -> None:
        self.budget = budget
        self.version = 0 if record is None else record.version
        today = day_of(budget, now).name
        self._before = Ledger(day=today) if record is None else load_ledger(record)
        self.ledger = rolled(self._before, today)
        self.is_folded = not self.ledger.open
        """Whether it knows of all runs that have ended."""

    @property
    def has_changed(self) -> bool:
        return replace(self.ledger, folded_at=self._before.folded_at) != self._before

    def fold(self, ended: Mapping[TaskId, Task], now: datetime) -> None:
        self.ledger = replace(folded(self.ledger, ended), folded_at=now)
        self.is_folded = True

    def over(self, series: Series, now: datetime) -> OverBudget | None:
        """Why one more run of the series is too much."""
        full = no_room(self.budget, self.ledger, now, self._estimate(series))
        if full is None:
            return None
        until = full.period.end - SHORTLY_BEFORE
        return OverBudget(self.budget.key, in_words(self.budget, full), until)

    def reserve(self, series: Series, task_id: TaskId) -> None:
        self.ledger = reserved(self.ledger, task_id, series.id, self._estimate(series))

    def release(self, task_ids: Collection[TaskId]) -> None:
        self.ledger = released(self.ledger, task_ids)

    def _estimate(self, series: Series) -> Usage:
        return estimated(self.budget, self.ledger, series.id, series.about.estimated_units)


class BudgetKeeper:
    """Keeps runs within the budgets of one store."""

    def __init__(self, store: Store, *, notice_tasks: NoticeTasks | None = None) -> None:
        self._store = store
        self._notice_tasks = notice_tasks

    async def reserve(self, wanted: Sequence[Wanted], now: datetime) -> Reserved | None:
        if not await self._store.records(BUDGET, limit=1):
            return None
        keys = _keys(each.series for each in wanted)
        accounts = await self.accounts(keys, now, lazily=True)
        if not accounts:
            return None
        verdicts = [_verdict(accounts, each, now) for each in wanted]
        is_over = any(verdict.over is not None for verdict in verdicts)
        if is_over and not all(account.is_folded for account in accounts.values()):
            # Runs that have ended may have used less than was reserved for them.
            accounts = await self.accounts(keys, now)
            verdicts = [_verdict(accounts, each, now) for each in wanted]
        notices = [
            task
            for each, (_, over) in zip(wanted, verdicts, strict=True)
            if over is not None and self._notice_tasks is not None
            for task in self._notice_tasks(each.series, over)
        ]
        return Reserved(verdicts, await self._puts(accounts.values()), notices)

    async def release(self, fired: Sequence[Wanted]) -> None:
        gone = {task_id for each in fired for task_id in each.task_ids}
        keys = _keys(each.series for each in fired)
        while True:
            accounts = await self.accounts(keys, await self._store.now(), gone)
            puts = await self._puts(accounts.values())
            try:
                if puts:
                    await self._store.commit(Changes(uuid4().hex, records=puts))
            except RecordConflict:
                continue
            return

    async def accounts(
        self,
        keys: Collection[str],
        now: datetime,
        gone: Collection[TaskId] = (),
        *,
        lazily: bool = False,
    ) -> dict[str, Account]:
        """Those of the budgets that there are, as they stand now; without the reservations of tasks
        that are `gone`. With `lazily`, runs that ended seconds ago may count as they were
        reserved, where many are under way.
        """
        budgets = [load_budget(each) for each in await self._named(BUDGET, keys)]
        if not budgets:
            return {}
        records = {each.key: each for each in await self._named(LEDGER, [b.key for b in budgets])}
        accounts = {each.key: Account(each, records.get(each.key), now) for each in budgets}
        for account in accounts.values() if gone else ():
            account.release(gone)
        looked_at = [
            account
            for account in accounts.values()
            if account.ledger.open and (not lazily or must_look(account.ledger, now))
        ]
        ids = {task_id for each in looked_at for task_id in each.ledger.open}
        ended = await read_tasks(self._store, list(ids)) if ids else {}
        for account in looked_at:
            account.fold(ended, now)
        return accounts

    async def _puts(self, accounts: Iterable[Account]) -> list[Put]:
        puts: list[Put] = []
        for account in accounts:
            if account.has_changed:
                key = account.budget.key
                puts.append(put_ledger(key, account.ledger, account.version))
                puts += await self._days(key, account.ledger)
        return puts

    async def _days(self, key: str, ledger: Ledger) -> list[Put]:
        """Days that are over, together with what is known of them."""
        if not ledger.past:
            return []
        kept = await self._named(DAY, [day_key(key, day) for day in ledger.past])
        known = dict(map(load_day, kept))
        return [
            put_day(key, day, added(known.get(day, {}), used)) for day, used in ledger.past.items()
        ]

    async def _named(self, kind: str, keys: Collection[str]) -> list[Record]:
        found: list[Record] = []
        every = list(keys)
        for start in range(0, len(every), AT_ONCE):
            some = every[start : start + AT_ONCE]
            found += await self._store.records(kind, keys=some, limit=len(some))
        return found


def budget_keys(series: Series) -> list[str]:
    """The budgets that runs of a series count for, if there are any."""
    owner = series.about.owner
    return [f"{SCHEDULE}{series.id}", *([] if owner is None else [f"{OWNER}{owner}"])]


def _keys(series: Iterable[Series]) -> list[str]:
    return list(dict.fromkeys(key for each in series for key in budget_keys(each)))


def _verdict(accounts: Mapping[str, Account], wanted: Wanted, now: datetime) -> Verdict:
    """Reserve as many of the runs as there is room for."""
    series = wanted.series
    concerned = [accounts[key] for key in budget_keys(series) if key in accounts]
    for number, task_id in enumerate(wanted.task_ids):
        reasons = [over for account in concerned if (over := account.over(series, now))]
        if reasons:
            return Verdict(number, max(reasons, key=lambda over: over.until))
        for account in concerned:
            account.reserve(series, task_id)
    return Verdict(len(wanted.task_ids))
