"""Which days of a year match.

A year is fully known by the weekday of its 1 January and by whether it, the one before and the one
after are leap years (the neighbours matter for week numbers only): 28 kinds of years in all. So the
matching days are worked out once per kind and then looked up, and a search for 29 February on a
Monday costs a glance at each year instead of a walk over its days.

The calendar repeats after 400 years, which are whole weeks. Whatever was not found by then never
comes.
"""

from __future__ import annotations

import calendar
from bisect import bisect_left
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

from holdfast.recurrence.rules import Freq, Rule

EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
CYCLE_YEARS: Final = 400
LAST_YEAR: Final = 9999
MONTH_STARTS: Final = (
    (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365),
    (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366),
)
"""The first day of each month, counted from 0, in a common year and in a leap year."""


def first_day(year: int) -> int:
    """The day of 1 January, in days since 1970."""
    return date(year, 1, 1).toordinal() - EPOCH_DAY


def year_of(day: int) -> int:
    """The year of a day since 1970; days beyond the calendar count as the year beyond it."""
    ordinal = day + EPOCH_DAY
    if ordinal < 1:
        return 0
    return date.fromordinal(ordinal).year if ordinal <= _LAST_ORDINAL else LAST_YEAR + 1


_LAST_ORDINAL: Final = date.max.toordinal()


class YearDays:
    """The days of any year that pass a test, in order, counted from 0."""

    __slots__ = ("_kinds", "_matches")

    def __init__(self, matches: Callable[[date], bool] | None) -> None:
        self._matches = matches
        self._kinds: dict[tuple[int, int], tuple[int, ...]] = {}

    @property
    def is_every_day(self) -> bool:
        """Whether there is no test at all."""
        return self._matches is None

    def of(self, year: int) -> tuple[int, ...]:
        """The matching days of a year."""
        kind = (
            date(year, 1, 1).weekday(),
            calendar.isleap(year - 1) + 2 * calendar.isleap(year) + 4 * calendar.isleap(year + 1),
        )
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = self._worked_out(year)
        return found

    def _worked_out(self, year: int) -> tuple[int, ...]:
        length = 365 + calendar.isleap(year)
        if self._matches is None:
            return tuple(range(length))
        # The same kind of year with room around it: week numbers look at its neighbours.
        start = date(2000 + year % CYCLE_YEARS, 1, 1).toordinal()
        matches = self._matches
        return tuple(n for n in range(length) if matches(date.fromordinal(start + n)))

    def has(self, day: int) -> bool:
        """Whether a day, counted from 1970, matches."""
        if self._matches is None:
            return True
        year = year_of(day)
        days, at = self.of(year), day - first_day(year)
        place = bisect_left(days, at)
        return place < len(days) and days[place] == at

    def next_day(self, day: int) -> int | None:
        """The first matching day from this one on, counted from 1970."""
        year = max(year_of(day), 1)
        for each in range(year, min(year + CYCLE_YEARS, LAST_YEAR) + 1):
            days, start = self.of(each), first_day(each)
            place = bisect_left(days, day - start)
            if place < len(days):
                return start + days[place]
        return None

    def within(self, start: int, end: int) -> tuple[int, ...]:
        """The matching days from `start` up to `end`, which is not one of them, counted from
        `start`.
        """
        found: tuple[int, ...] = ()
        for year in range(max(year_of(start), 1), min(year_of(end - 1), LAST_YEAR) + 1):
            days, ahead = self.of(year), first_day(year) - start
            low, high = bisect_left(days, -ahead), bisect_left(days, end - start - ahead)
            found += tuple([ahead + day for day in days[low:high]])
        return found


def rule_days(rule: Rule) -> YearDays:
    """The days that the BY parts of a rule let through; what they expand from `explicit()` is
    in.
    """
    tests = [
        test
        for test in (
            _month_test(rule),
            _week_test(rule),
            _year_day_test(rule),
            _month_day_test(rule),
            _weekday_test(rule),
        )
        if test is not None
    ]
    if not tests:
        return YearDays(None)
    return YearDays(lambda day: all(test(day) for test in tests))


_Test = Callable[[date], bool]


def _month_test(rule: Rule) -> _Test | None:
    months = frozenset(rule.bymonth)
    return (lambda day: day.month in months) if months else None


def _month_day_test(rule: Rule) -> _Test | None:
    wanted = frozenset(rule.bymonthday)

    def test(day: date) -> bool:
        return day.day in wanted or day.day - month_length(day) - 1 in wanted

    return test if wanted else None


def _year_day_test(rule: Rule) -> _Test | None:
    wanted = frozenset(rule.byyearday)

    def test(day: date) -> bool:
        number, length = day.timetuple().tm_yday, 365 + calendar.isleap(day.year)
        return number in wanted or number - length - 1 in wanted

    return test if wanted else None


def _week_test(rule: Rule) -> _Test | None:
    wanted = frozenset(rule.byweekno)

    def test(day: date) -> bool:
        number, weeks = week_number(day, rule.wkst)
        return number in wanted or number - weeks - 1 in wanted

    return test if wanted else None


def week_number(day: date, week_start: int) -> tuple[int, int]:
    """The number of a day's week, and how many weeks the year of that week has.

    Week 1 is the first with four days of the year, so the last days of December may be in week 1
    and the first of January in week 53.
    """
    year, start = day.year, _first_week(day.year, week_start)
    if day < start:
        year, start = year - 1, _first_week(year - 1, week_start)
    elif day >= (following := _first_week(year + 1, week_start)):
        year, start = year + 1, following
    weeks = (_first_week(year + 1, week_start) - start).days // 7
    return (day - start).days // 7 + 1, weeks


def _first_week(year: int, week_start: int) -> date:
    fourth = date(year, 1, 4)
    return fourth - timedelta(days=(fourth.weekday() - week_start) % 7)


def _weekday_test(rule: Rule) -> _Test | None:
    if not rule.byday:
        return None
    plain = frozenset(day for n, day in rule.byday if n == 0)
    numbered = frozenset((n, day) for n, day in rule.byday if n)
    in_year = rule.freq is Freq.YEARLY and not rule.bymonth

    def test(day: date) -> bool:
        weekday = day.weekday()
        if weekday in plain:
            return True
        if not numbered:
            return False
        if in_year:
            number, length = day.timetuple().tm_yday, 365 + calendar.isleap(day.year)
        else:
            number, length = day.day, month_length(day)
        up, down = (number - 1) // 7 + 1, -((length - number) // 7 + 1)
        return (up, weekday) in numbered or (down, weekday) in numbered

    return test


def month_length(day: date) -> int:
    """How many days the month of a day has."""
    starts = MONTH_STARTS[calendar.isleap(day.year)]
    return starts[day.month] - starts[day.month - 1]
