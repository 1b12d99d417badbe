"""Budgets and ledgers, and which runs there is room for. Pure.

A *budget* says how many runs, units, tokens and how much money an owner or a schedule may use in a
day and in a month of its zone. Its *ledger* says what runs of the present day and month have used,
and what those have reserved that were fired and have not been seen to end. A run is fired if what
was used, what is reserved and what it is expected to use itself fit every limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import Task, TaskId
from holdfast.core.usage import DIGITS, NOTHING, Totals, Usage, tells_its_cost, totals_of, used_by

OWNER: Final = "owner:"
SCHEDULE: Final = "schedule:"
NEARLY: Final = 1e-9
"""Money and units are binary fractions: what exceeds a limit by less does not."""
REMEMBERED: Final = 20
"""An average is of about so many runs; those before count less and less."""
MOST_AVERAGES: Final = 1000
FEW: Final = 20
LOOK_EVERY: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be used in one period; None is as much as there is."""

    runs: int | None = None
    units: float | None = None
    tokens: int | None = None
    cost: float | None = None


UNLIMITED: Final = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What a run is expected to use of which nothing is known yet."""

    units: float = 1.0
    tokens: int = 4000
    cost: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """`key` is `owner:ann` or `schedule:reports`; a day begins at midnight of the `zone`. Without
    any limit it only counts.
    """

    key: str
    day: Limits = field(default_factory=Limits)
    month: Limits = field(default_factory=Limits)
    zone: str = "UTC"
    assumed: Assumed = field(default_factory=Assumed)


class Period(NamedTuple):
    """A day or a month, by its name (`2026-03-02`, `2026-03`), and the instant at which it ends."""

    word: str
    name: str
    end: datetime


class Reservation(NamedTuple):
    """What a run that has not been seen to end is expected to use. `day` is when it was fired."""

    schedule: str
    day: str
    estimate: Usage


class Average(NamedTuple):
    """What runs of one schedule have used, each."""

    runs: float
    usage: Usage


Days = Mapping[str, Mapping[str, Totals]]
"""What the runs of each schedule used, by day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """`today` is by schedule, `month` is all of the month that `day` is in. `past` are days that
    are over, or runs of such that ended only now, to be written elsewhere. `held_today` and
    `held_month` are what is reserved (`counted`), so that it is not added up for every run.
    `folded_at` is when somebody last looked which of the `open` runs have ended.
    """

    day: str
    today: Mapping[str, Totals] = field(default_factory=dict)
    month: Totals = NOTHING
    open: Mapping[TaskId, Reservation] = field(default_factory=dict)
    averages: Mapping[str, Average] = field(default_factory=dict)
    past: Days = field(default_factory=dict)
    held_today: Totals = NOTHING
    held_month: Totals = NOTHING
    folded_at: datetime | None = None

    @property
    def today_in_all(self) -> Totals:
        return sum(self.today.values(), NOTHING)


class NoRoom(NamedTuple):
    """What a run would exceed."""

    word: str
    period: Period
    limit: float
    used: float
    reserved: float


def day_of(budget: Budget, now: datetime) -> Period:
    """The day that an instant is in, on the calendar of the budget's zone."""
    zone = ZoneInfo(budget.zone)
    today = now.astimezone(zone).date()
    end = datetime.combine(today + timedelta(days=1), time(), tzinfo=zone)
    return Period("day", today.isoformat(), end)


def month_of(budget: Budget, now: datetime) -> Period:
    zone = ZoneInfo(budget.zone)
    first = now.astimezone(zone).date().replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    return Period("month", first.isoformat()[:7], datetime.combine(following, time(), tzinfo=zone))


def rolled(ledger: Ledger, day: str) -> Ledger:
    """The ledger of this day: of a later one it begins anew. A day that seems to come again, since
    the zone was changed, goes on.
    """
    if day <= ledger.day:
        return ledger
    month = ledger.month if day[:7] == ledger.day[:7] else NOTHING
    past = _with(ledger.past, ledger.day, ledger.today) if ledger.today else ledger.past
    return counted(replace(ledger, day=day, today={}, month=month, past=past))


def folded(ledger: Ledger, ended: Mapping[TaskId, Task]) -> Ledger:
    """The ledger with what its runs have used that have ended. `ended` are the tasks of all its
    reservations, as far as they are kept: one that is not has used what was expected.
    """
    left = dict(ledger.open)
    for task_id, reservation in ledger.open.items():
        task = ended.get(task_id)
        if task is not None and task.state not in TERMINAL:
            continue
        del left[task_id]
        used = totals_of(1, reservation.estimate)
        if task is not None:
            used = spent_on(task, reservation.estimate)
        if used.runs:
            ledger = _spent(ledger, reservation, used)
        if used.runs and task is not None:
            ledger = _averaged(ledger, reservation.schedule, used.usage)
    return counted(replace(ledger, open=left))


def must_look(ledger: Ledger, now: datetime) -> bool:
    """Whether to look which runs have ended before another one is reserved: always while few are
    under way, and every few seconds while there are many.
    """
    if len(ledger.open) <= FEW or ledger.folded_at is None:
        return bool(ledger.open)
    return now - ledger.folded_at >= LOOK_EVERY


def counted(ledger: Ledger) -> Ledger:
    """The ledger that knows what is reserved in all."""
    month = _sum(one for one in ledger.open.values() if one.day[:7] == ledger.day[:7])
    today = _sum(one for one in ledger.open.values() if one.day == ledger.day)
    return replace(ledger, held_today=today, held_month=month)


def spent_on(task: Task, estimate: Usage) -> Totals:
    """What a run has used that has ended. What a failed one has paid is not known: it counts as
    expected. One that never began has used nothing.
    """
    if task.attempt == 0:
        return NOTHING
    used = used_by(task)
    if not tells_its_cost(task):
        used = replace(used, cost=max(used.cost, estimate.cost))
    return totals_of(1, used)


def released(ledger: Ledger, gone: Collection[TaskId]) -> Ledger:
    """The ledger without the reservations of runs that came to nothing."""
    left = {one: each for one, each in ledger.open.items() if one not in gone}
    return counted(replace(ledger, open=left))


def estimated(
    budget: Budget, ledger: Ledger, schedule: str, estimated_units: float | None
) -> Usage:
    """What a run is expected to use: what people say of its units, else what runs of its schedule
    used on average, else what is assumed, but then no more than a limit allows: the first run of a
    schedule is always tried if there is all the room.
    """
    known = ledger.averages.get(schedule)
    if known is not None:
        usage = known.usage
    else:
        assumed, tightest = budget.assumed, _tightest(budget)
        usage = Usage(
            units=min(assumed.units, tightest["units"]),
            tokens_in=int(min(assumed.tokens, tightest["tokens"])),
            cost=min(assumed.cost, tightest["cost"]),
        )
    return usage if estimated_units is None else replace(usage, units=estimated_units)


def no_room(budget: Budget, ledger: Ledger, now: datetime, estimate: Usage) -> NoRoom | None:
    """What one more run would exceed, the limit that lasts longest first; None if there is room."""
    for period, limits, used, held in (
        (month_of(budget, now), budget.month, ledger.month, ledger.held_month),
        (day_of(budget, now), budget.day, ledger.today_in_all, ledger.held_today),
    ):
        if limits == UNLIMITED:
            continue
        wanted = used + held + totals_of(1, estimate)
        for each in fields(Limits):
            limit = getattr(limits, each.name)
            if limit is not None and getattr(wanted, each.name) > limit + NEARLY:
                said = (getattr(used, each.name), getattr(held, each.name))
                return NoRoom(each.name, period, limit, *said)
    return None


def reserved(ledger: Ledger, task_id: TaskId, schedule: str, estimate: Usage) -> Ledger:
    """The ledger with one more run."""
    one = totals_of(1, estimate)
    return replace(
        ledger,
        open={**ledger.open, task_id: Reservation(schedule, ledger.day, estimate)},
        held_today=ledger.held_today + one,
        held_month=ledger.held_month + one,
    )


def in_words(budget: Budget, full: NoRoom) -> str:
    """Why a run is not fired, for people."""
    whose = budget.key.partition(":")[2]
    who = f"owner {whose}" if budget.key.startswith(OWNER) else f"schedule {whose}"
    waiting = f" and {full.reserved:,.10g} reserved by runs under way" if full.reserved else ""
    return (
        f"the budget of {who} has no room for another run: {full.used:,.10g} of "
        f"{full.limit:,.10g} {full.word} used in the {full.period.word} {full.period.name}"
        f"{waiting}"
    )


def _sum(many: Iterable[Reservation]) -> Totals:
    each = [(one.units, one.tokens_in, one.tokens_out, one.cost) for _, _, one in many]
    if not each:
        return NOTHING
    units, tokens_in, tokens_out, cost = map(sum, zip(*each, strict=True))
    return Totals(
        runs=len(each),
        units=round(units, DIGITS),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=round(cost, DIGITS),
    )


def _tightest(budget: Budget) -> Mapping[str, float]:
    tightest: dict[str, float] = {}
    for each in fields(Limits):
        both = (getattr(budget.day, each.name), getattr(budget.month, each.name))
        tightest[each.name] = min((one for one in both if one is not None), default=float("inf"))
    return tightest


def _spent(ledger: Ledger, reservation: Reservation, used: Totals) -> Ledger:
    schedule, day, _ = reservation
    if day[:7] == ledger.day[:7]:
        ledger = replace(ledger, month=ledger.month + used)
    if day != ledger.day:
        return replace(ledger, past=_with(ledger.past, day, {schedule: used}))
    today = {**ledger.today, schedule: ledger.today.get(schedule, NOTHING) + used}
    return replace(ledger, today=today)


def _averaged(ledger: Ledger, schedule: str, used: Usage) -> Ledger:
    """The average with one more run. Schedules that were seen last are remembered."""
    averages = dict(ledger.averages)
    before = averages.pop(schedule, Average(0, Usage()))
    runs = min(before.runs + 1, REMEMBERED)
    share = 1 / runs

    def mixed(old: float, new: float) -> float:
        return old + (new - old) * share

    usage = Usage(
        units=mixed(before.usage.units, used.units),
        tokens_in=round(mixed(before.usage.tokens_in, used.tokens_in)),
        tokens_out=round(mixed(before.usage.tokens_out, used.tokens_out)),
        cost=mixed(before.usage.cost, used.cost),
    )
    averages[schedule] = Average(runs, usage)
    while len(averages) > MOST_AVERAGES:
        del averages[next(iter(averages))]
    return replace(ledger, averages=averages)


def _with(past: Days, day: str, more: Mapping[str, Totals]) -> Days:
    return {**past, day: added(past.get(day, {}), more)}


def added(one: Mapping[str, Totals], other: Mapping[str, Totals]) -> dict[str, Totals]:
    """The totals of both, schedule by schedule."""
    names = [*one, *(name for name in other if name not in one)]
    return {name: one.get(name, NOTHING) + other.get(name, NOTHING) for name in names}
