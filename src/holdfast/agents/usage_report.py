"""What the runs of an owner, or of everybody, have used from one day to another.

Days come from the ledger of the owner's budget, if there is one: it outlives the tasks. The others
are added up from the tasks that are kept.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from holdfast.agents.budget_records import DAY, load_day
from holdfast.agents.budgets import OWNER, Days, added
from holdfast.agents.executions_of import runs_among
from holdfast.agents.ledger import Account, BudgetKeeper
from holdfast.core.budget_state import UsageReport, UsageRow
from holdfast.core.query import TaskFilter
from holdfast.core.record import Record
from holdfast.core.usage import NOTHING, Totals, totals_of, used_by
from holdfast.errors import InvalidOption
from holdfast.flow.results import read_tasks
from holdfast.ports.store import Store

By = Literal["day", "schedule"]
MOST_DAYS: Final = 400
PAGE: Final = 500


class _Range(NamedTuple):
    """From the first day to the last, both inside."""

    first: date
    last: date
    zone: ZoneInfo

    @property
    def names(self) -> list[str]:
        number = (self.last - self.first).days + 1
        return [(self.first + timedelta(days=each)).isoformat() for each in range(number)]


class Used(NamedTuple):
    """What was used, by day and schedule."""

    owner: str | None
    asked: _Range
    days: Days

    def report(self, by: By | None) -> UsageReport:
        every = [each for used in self.days.values() for each in used.values()]
        return UsageReport(
            owner=self.owner,
            first=self.asked.first.isoformat(),
            last=self.asked.last.isoformat(),
            zone=self.asked.zone.key,
            totals=sum(every, NOTHING),
            rows=_rows(self.days, by),
        )


async def used_by_runs(
    store: Store,
    *,
    owner: str | None = None,
    first: date | None = None,
    last: date | None = None,
    within: TaskFilter | None = None,
) -> Used:
    """What was used: from the first of this month until today, unless given. `within` bounds what
    is looked at; it is then added up from tasks alone.
    """
    now = await store.now()
    account = None
    if owner is not None and within is None:
        key = f"{OWNER}{owner}"
        account = (await BudgetKeeper(store).accounts([key], now)).get(key)
    zone = "UTC" if account is None else account.budget.zone
    asked = _read(first, last, now.astimezone(ZoneInfo(zone)).date(), ZoneInfo(zone))
    days = {} if account is None else await _kept(store, account, asked)
    missing = [name for name in asked.names if name not in days]
    if missing:
        which = TaskFilter(owner=owner) if within is None else within
        found = await _added_up(store, which, asked)
        days |= {name: found[name] for name in missing if name in found}
    return Used(owner, asked, days)


def _read(first: date | None, last: date | None, today: date, zone: ZoneInfo) -> _Range:
    end = today if last is None else last
    begin = min(today.replace(day=1), end) if first is None else first
    if begin > end:
        raise InvalidOption("from", f"expected a day up to {end.isoformat()}, got {begin}")
    if (end - begin).days >= MOST_DAYS:
        raise InvalidOption("from", f"expected {MOST_DAYS} days at most, got {(end - begin).days}")
    return _Range(begin, end, zone)


async def _kept(store: Store, account: Account, asked: _Range) -> dict[str, dict[str, Totals]]:
    """The days that the ledger of a budget knows."""
    key, ledger = account.budget.key, account.ledger
    names, found = frozenset(asked.names), dict[str, dict[str, Totals]]()
    after: Record | None = Record(DAY, "", 0, "", group=key, sort=asked.first.isoformat())
    while after is not None:
        page = await store.records(DAY, group=key, after=after, limit=PAGE)
        for day, used in map(load_day, page):
            found[day] = dict(used)
        after = page[-1] if len(page) == PAGE and page[-1].sort <= max(names) else None
    today: Days = {ledger.day: ledger.today}
    for days in (ledger.past, today, await _under_way(store, account)):
        for day, used in days.items():
            found[day] = added(found.get(day, {}), used)
    return {day: used for day, used in found.items() if day in names}


async def _under_way(store: Store, account: Account) -> Days:
    """What runs that have not ended have used so far."""
    found: dict[str, dict[str, Totals]] = {}
    tasks = await read_tasks(store, list(account.ledger.open))
    for task_id, task in tasks.items():
        if task.attempt:
            schedule, day, _ = account.ledger.open[task_id]
            used = {schedule: totals_of(1, used_by(task))}
            found[day] = added(found.get(day, {}), used)
    return found


async def _added_up(store: Store, which: TaskFilter, asked: _Range) -> dict[str, dict[str, Totals]]:
    """The same from the tasks that are kept."""
    midnight = time(tzinfo=asked.zone)
    bounded = replace(
        which,
        created_after=datetime.combine(asked.first, midnight),
        created_before=datetime.combine(asked.last + timedelta(days=1), midnight),
    )
    found: dict[str, dict[str, Totals]] = {}
    async for task, run in runs_among(store, bounded):
        if task.attempt:
            day = task.created_at.astimezone(asked.zone).date().isoformat()
            used = {run.schedule: totals_of(1, used_by(task))}
            found[day] = added(found.get(day, {}), used)
    return found


def _rows(days: Days, by: By | None) -> tuple[UsageRow, ...]:
    if by is None:
        return ()
    found: dict[str, Totals] = {}
    for day, used in sorted(days.items()):
        for schedule, totals in used.items():
            key = day if by == "day" else schedule
            found[key] = found.get(key, NOTHING) + totals
    return tuple(UsageRow(key=key, totals=found[key]) for key in sorted(found))
