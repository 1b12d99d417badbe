"""A schedule in plain English, for people to check before they agree to it.

Everything that decides when it runs is said, also what a rule takes silently from its start: the
sentence of "every 2 weeks" names the weekday, the time and the week from which it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from holdfast.recurrence.cron import Cron, parse_cron
from holdfast.recurrence.moments import Moment
from holdfast.recurrence.phrases import (
    MONTHS,
    WEEKDAYS,
    clock_times,
    joined,
    listed,
    moment_words,
    month_days,
    nth,
    numbers,
    spelled_nth,
    weekdays,
)
from holdfast.recurrence.rules import Freq, Rule, parse_rule

if TYPE_CHECKING:
    from holdfast.recurrence.schedule import Schedule

_UNITS: Final = {
    Freq.SECONDLY: "second",
    Freq.MINUTELY: "minute",
    Freq.HOURLY: "hour",
    Freq.DAILY: "day",
    Freq.WEEKLY: "week",
    Freq.MONTHLY: "month",
    Freq.YEARLY: "year",
}
_MOST_DATES: Final = 3


def schedule_words(schedule: Schedule) -> str:
    """The whole schedule in one sentence."""
    start = schedule.start
    if schedule.kind == "once":
        text = f"once on {moment_words(start)}"
    elif schedule.line is not None:
        text = cron_words(parse_cron(schedule.line))
    elif schedule.step is not None:
        text = f"every {_length(schedule.step)}, counted from {moment_words(start)}"
    else:
        text = "; and ".join(rule_words(parse_rule(each), start) for each in schedule.rules)
        text = text or f"once on {moment_words(start)}"
    return text + _bounds(schedule) + f", {schedule.tz}"


def _bounds(schedule: Schedule) -> str:
    text = ""
    if schedule.kind == "cron" and schedule.dtstart is not None:
        text += f", from {moment_words(schedule.dtstart)} on"
    if schedule.rdate:
        text += f", also on {_dates(schedule.rdate)}"
    if schedule.until is not None:
        text += f", until {moment_words(schedule.until)}"
    if schedule.max_runs is not None:
        text += f", {_times(schedule.max_runs)} at most"
    if schedule.exdate:
        text += f", except on {_dates(schedule.exdate)}"
    if schedule.gap == "skip":
        text += ", left out where the clock skips that time"
    if schedule.overlap != "first":
        which = "both times" if schedule.overlap == "both" else "the second time"
        text += f", {which} where the clock shows it twice"
    return text


def _dates(dates: Sequence[Moment]) -> str:
    shown = [moment_words(each) for each in dates[:_MOST_DATES]]
    more = len(dates) - len(shown)
    return joined([*shown, *([f"{more} more"] if more else [])])


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _length(seconds: int) -> str:
    for size, unit in ((3600, "hour"), (60, "minute")):
        if seconds % size == 0:
            return _every(unit, seconds // size)
    return _every("second", seconds)


def _every(unit: str, interval: int) -> str:
    return unit if interval == 1 else f"{interval} {unit}s"


def rule_words(rule: Rule, start: datetime) -> str:
    """One RRULE, without its zone."""
    full = rule.explicit(start)
    text = f"every {_every(_UNITS[rule.freq], rule.interval)}"
    text += _elapsed_words(full) if rule.freq.is_elapsed else _wall_words(full)
    if rule.bysetpos:
        places = joined(f"the {spelled_nth(each)}" for each in _in_order(rule.bysetpos))
        text += f", only {places} of these in each {_UNITS[rule.freq]}"
    if rule.wkst and _minds_week_start(rule):
        text += f", weeks starting on {WEEKDAYS[rule.wkst]}"
    if rule.freq.is_elapsed:
        text += f", counted from {moment_words(start)}"
    elif rule.interval > 1 or rule.count is not None:
        text += f", counted from {moment_words(start.date())}"
    if rule.count is not None:
        text += f", {_times(rule.count)}"
    if rule.until is not None:
        text += f", until {moment_words(rule.until)}"
    return text


def _in_order(values: Sequence[int]) -> list[int]:
    return [v for v in values if v > 0] + sorted((v for v in values if v < 0), reverse=False)


def _minds_week_start(rule: Rule) -> bool:
    if rule.freq is Freq.WEEKLY:
        return rule.interval > 1 or bool(rule.bysetpos)
    return bool(rule.byweekno)


def _wall_words(rule: Rule) -> str:
    days = _limits(rule) if rule.freq in (Freq.DAILY, Freq.WEEKLY) else _days_of_period(rule)
    return f"{days} {clock_times(rule.byhour, rule.byminute, rule.bysecond)}"


def _limits(rule: Rule) -> str:
    """Days of a week, and what lets only some days through."""
    text = ""
    if rule.byday:
        days = [day for _, day in rule.byday]
        text += (
            f" on {weekdays(days)}" if rule.freq is Freq.WEEKLY else f", only on {weekdays(days)}"
        )
    if rule.bymonthday:
        text += f", only on {month_days(rule.bymonthday)} of the month"
    if rule.byyearday:
        text += f", only on {_year_days(rule.byyearday)}"
    if rule.bymonth:
        text += f", only in {_months(rule)}"
    return text + ("," if ", only" in text else "")


def _days_of_period(rule: Rule) -> str:
    """Days of a month or of a year: the first condition names them, the others narrow them."""
    yearly = rule.freq is Freq.YEARLY
    place = f" of {_months(rule)}" if yearly and rule.bymonth else ""
    conditions: list[str] = []
    if rule.byyearday:
        conditions.append(_year_days(rule.byyearday))
    if rule.bymonthday:
        each_month = " of every month" if yearly and not place and not conditions else ""
        conditions.append(month_days(rule.bymonthday) + (each_month if not conditions else ""))
    if rule.byday:
        conditions.append(_period_weekdays(rule, first=not conditions))
    if rule.byweekno:
        weeks = _weeks(rule.byweekno)
        only_days = len(conditions) == 1 and rule.byday
        conditions[:] = (
            [f"{conditions[0]} of {weeks}"] if only_days else [*conditions, f"in {weeks}"]
        )
    text = f" on {conditions[0]}"
    if place and not rule.byyearday and not rule.byweekno:
        text += place
    elif rule.bymonth:
        text += f" in {_months(rule)}"
    narrowed = "".join(f", if it is {each}" for each in conditions[1:])
    return f"{text}{narrowed}," if narrowed else text


def _period_weekdays(rule: Rule, *, first: bool) -> str:
    """Weekdays of a month or year, plain and numbered; `first` if nothing has named the days
    yet.
    """
    plain = [day for n, day in rule.byday if n == 0]
    numbered = sorted((pair for pair in rule.byday if pair[0]), key=lambda p: (p[0] < 0, p))
    word = "and" if first else "or"
    items = []
    if plain:
        start = "every" if first and not rule.byweekno else "" if first else "a"
        items.append(f"{start} {weekdays(plain, word)}".strip())
    items += [f"the {spelled_nth(n)} {WEEKDAYS[day]}" for n, day in numbered]
    text = joined(items, word)
    if numbered and rule.freq is Freq.YEARLY and not rule.bymonth:
        return f"{text} of the year"
    return text if first or not numbered else f"{text} of the month"


def _months(rule: Rule) -> str:
    return numbers(rule.bymonth, ("", *MONTHS))


def _year_days(days: Sequence[int]) -> str:
    up, down = [d for d in days if d > 0], sorted((d for d in days if d < 0), reverse=True)
    items = [listed("day", up)] if up else []
    return joined([*items, *(f"the {nth(d)} day" for d in down)]) + " of the year"


def _weeks(weeks: Sequence[int]) -> str:
    up, down = [w for w in weeks if w > 0], sorted((w for w in weeks if w < 0), reverse=True)
    items = [listed("week", up)] if up else []
    return joined([*items, *(f"the {nth(w)} week" for w in down)])


def _elapsed_words(rule: Rule) -> str:
    expands_minutes = rule.freq is Freq.HOURLY
    expands_seconds = rule.freq is not Freq.SECONDLY
    text = ""
    if rule.byminute and expands_minutes:
        text += f" at {listed('minute', rule.byminute)}"
    if rule.bysecond and expands_seconds:
        text += f"{' and' if text else ' at'} {listed('second', rule.bysecond)}"
    limits = []
    if rule.byhour:
        limits.append(f"in {listed('hour', rule.byhour)}")
    if rule.byminute and not expands_minutes:
        limits.append(f"in {listed('minute', rule.byminute)}")
    if rule.bysecond and not expands_seconds:
        limits.append(f"at {listed('second', rule.bysecond)}")
    text += f", only {' and '.join(limits)}" if limits else ""
    return text + _limits(rule).removesuffix(",")


def cron_words(cron: Cron) -> str:
    """A cron line, without its zone."""
    days = _cron_days(cron)
    if not cron.is_elapsed:
        return f"{days or 'every day'} {clock_times(cron.hours, cron.minutes, (0,))}"
    hours = "" if len(cron.hours) == 24 else f" of {listed('hour', cron.hours)}"
    step = _clock_step(cron.minutes)
    if step is not None:
        text = f"every {_every('minute', step)}{hours}"
    elif cron.minutes == (0,) and not hours:
        text = "every hour at minute 0"
    else:
        text = f"at {listed('minute', cron.minutes)}{hours or ' of every hour'}"
    return text + (f", {days}" if days else "")


def _clock_step(minutes: tuple[int, ...]) -> int | None:
    """The n of `*/n` if it divides the hour, so that "every n minutes" is true."""
    if len(minutes) < 2 or 60 % len(minutes):
        return None
    step = 60 // len(minutes)
    return step if minutes == tuple(range(0, 60, step)) else None


def _cron_days(cron: Cron) -> str:
    number, weekday = _cron_month_days(cron), _cron_weekdays(cron)
    in_months = ""
    if len(cron.months) < 12:
        in_months = f" in {numbers(sorted(cron.months), ('', *MONTHS))}"
    if number and weekday:
        text = f"{number}, or {weekday}," if cron.either_day else f"{number} if it is {weekday[3:]}"
    else:
        text = number or weekday
    return (text or ("every day" if in_months else "")) + in_months


def _cron_month_days(cron: Cron) -> str:
    if len(cron.month_days) == 31:
        return ""
    items = [month_days(sorted(cron.month_days))] if cron.month_days else []
    if cron.last_month_day:
        items.append("the last day")
    for each in sorted(cron.nearest):
        near = f"the workday nearest to the {nth(each)}" if each else "the last workday"
        items.append(near)
    return f"on {joined(items)} of the month"


def _cron_weekdays(cron: Cron) -> str:
    if len(cron.weekdays) == 7:
        return ""
    items = [weekdays(cron.weekdays)] if cron.weekdays else []
    special = sorted(cron.special_weekdays, key=lambda pair: (pair[0] < 0, pair))
    items += [f"the {spelled_nth(n)} {WEEKDAYS[day]} of the month" for n, day in special]
    return f"on {joined(items)}"
