"""A rule of days, weeks, months or years: it follows the clock on the wall.

The search never walks from the start of the rule. It goes to the period (day, week, month, year) of
the instant asked for, skips by whole intervals, and expands that period: its matching days times
its times of day. So the answer costs the same after one day and after thirty years.

Wall times come in order, but near a clock change instants may not: 02:30 becomes 03:30 in the gap
while 03:10 stays. There, and only there, the search looks at the neighbours as well.

COUNT and BYSETPOS look at wall times, before gaps and overlaps: neither a change of zone nor an
update of the tz database changes which run is the tenth.
"""

from __future__ import annotations

import calendar
import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from holdfast.recurrence.rules import Freq
from holdfast.recurrence.year_days import (
    CYCLE_YEARS,
    EPOCH_DAY,
    LAST_YEAR,
    MONTH_STARTS,
    YearDays,
    first_day,
    year_of,
)
from holdfast.recurrence.zones import DAY, Gap, Overlap, Zone

CYCLE_DAYS: Final = 146_097
_CYCLE: Final = {
    Freq.YEARLY: CYCLE_YEARS,
    Freq.MONTHLY: CYCLE_YEARS * 12,
    Freq.WEEKLY: CYCLE_DAYS // 7,
    Freq.DAILY: CYCLE_DAYS,
}
"""How many periods the calendar takes to repeat: so many empty ones in a row, and none will
match.
"""

LAST_DAY: Final = first_day(LAST_YEAR) + 364


class Run(NamedTuple):
    """One run: when it is, and the wall time that the rule meant."""

    instant: int
    wall: int
    moved: bool
    """Whether the wall time does not exist, and the run was moved behind the gap."""


@dataclass(slots=True, kw_only=True)
class WallRule:
    """The runs of one rule; see the module. Times in seconds, days since 1970.

    `clocks` are the times of day in order; `last_wall` is where COUNT ends it, `until` an instant.
    """

    freq: Freq
    interval: int
    start: int
    days: YearDays
    clocks: tuple[int, ...]
    positions: tuple[int, ...] = ()
    week_start: int = 0
    zone: Zone
    gap: Gap = "shift"
    overlap: Overlap = "first"
    until: int | None = None
    last_wall: int | None = None

    def next_after(self, after: int) -> Run | None:
        """The first run later than an instant."""
        wall = self.zone.wall(after)
        near = self.zone.shift_near(after)
        run = self._next_in_order(after, wall) if not near else None
        if run is None or self.zone.shift_near(run.instant):
            run = self._next_of_neighbours(after, wall - near, near)
        if run is None or (self.until is not None and run.instant > self.until):
            return None
        return run

    def _next_in_order(self, after: int, wall: int) -> Run | None:
        found = next(self.walls_from(wall + 1), None)
        runs = () if found is None else self._runs(found)
        return runs[0] if len(runs) == 1 and runs[0].instant > after else None

    def _next_of_neighbours(self, after: int, wall: int, near: int) -> Run | None:
        best: Run | None = None
        for each in self.walls_from(wall):
            if best is not None and each > self.zone.wall(best.instant) + near:
                break
            for run in self._runs(each):
                if run.instant > after and (best is None or _rank(run) < _rank(best)):
                    best = run
                    near = max(near, self.zone.shift_near(run.instant))
        return best

    def _runs(self, wall: int) -> tuple[Run, ...]:
        before, after = self.zone.offsets(wall)
        if before == after:
            return (Run(wall - before, wall, False),)
        moved = before < after
        instants = self.zone.instants(wall, self.gap, self.overlap)
        return tuple(Run(instant, wall, moved) for instant in instants)

    def nth_wall(self, number: int) -> int | None:
        """The wall time of the n-th match, or None if the calendar ends before it."""
        if self.gap == "skip":
            existing = (wall for wall in self.walls_from(self.start) if self._runs(wall))
            return next((wall for n, wall in enumerate(existing, 1) if n == number), None)
        first = self.start // DAY
        for base, days in self._periods(first):
            if base <= first + 366:  # the first period may have begun before the start
                size = sum(1 for _ in self._walls_of(base, days, self.start))
            else:
                size = self._size(len(days) * len(self.clocks))
            if size >= number:
                walls = self._walls_of(base, days, self.start)
                return next(wall for n, wall in enumerate(walls, 1) if n == number)
            number -= size
        return None

    def _size(self, length: int) -> int:
        return length if not self.positions else len(_places(self.positions, length))

    def walls_from(self, wall: int) -> Iterator[int]:
        """The wall times of the rule in order, from this one on; COUNT ends them, UNTIL does
        not.
        """
        wall = max(wall, self.start)
        idle, most = 0, _CYCLE[self.freq]
        for base, days in self._periods(wall // DAY):
            idle += 1
            for each in self._walls_of(base, days, wall):
                if self.last_wall is not None and each > self.last_wall:
                    return
                idle = 0
                yield each
            if idle > most:
                return

    def _walls_of(self, base: int, days: tuple[int, ...], wall: int) -> Iterator[int]:
        """The wall times of one period, from `wall` on."""
        clocks = self.clocks
        if self.positions:
            for place in _places(self.positions, len(days) * len(clocks)):
                each = (base + days[place // len(clocks)]) * DAY + clocks[place % len(clocks)]
                if each >= wall:
                    yield each
            return
        for place in range(bisect_left(days, wall // DAY - base), len(days)):
            midnight = (base + days[place]) * DAY
            for clock in range(bisect_left(clocks, wall - midnight), len(clocks)):
                yield midnight + clocks[clock]

    def _periods(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The periods of the rule from the one around `day` on: a first day, and the matching days
        counted from it.
        """
        match self.freq:
            case Freq.YEARLY:
                return self._years(day)
            case Freq.MONTHLY:
                return self._months(day)
            case Freq.WEEKLY:
                return self._weeks(day)
            case _:
                return self._single_days(day)

    def _years(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        origin = year_of(self.start // DAY)
        begin = _from(year_of(day), origin, self.interval)
        for year in range(begin, LAST_YEAR + 1, self.interval):
            yield first_day(year), self.days.of(year)

    def _months(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        origin, begin = month_of(self.start // DAY), month_of(day)
        begin = _from(begin, origin, self.interval)
        for month in range(begin, (LAST_YEAR + 1) * 12, self.interval):
            yield self.month_days(month)

    def month_days(self, month: int) -> tuple[int, tuple[int, ...]]:
        """The first day of a month (12 × year + month from 0), and its matching days."""
        year, number = divmod(month, 12)
        days, first = self.days.of(year), first_day(year)
        starts = MONTH_STARTS[calendar.isleap(year)]
        low, high = starts[number], starts[number + 1]
        found = days[bisect_left(days, low) : bisect_left(days, high)]
        return first + low, tuple([each - low for each in found])

    def _weeks(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        start = self.start // DAY
        origin = start - (start + 3 - self.week_start) % 7  # 1 January 1970 was a Thursday
        begin = origin + _from((day - origin) // 7, 0, self.interval) * 7
        for week in range(begin, LAST_DAY - 6, self.interval * 7):
            yield week, self.days.within(week, week + 7)

    def _single_days(self, day: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        origin, step = self.start // DAY, self.interval
        day = _from(day, origin, step)
        idle, most = 0, CYCLE_DAYS // math.gcd(step, CYCLE_DAYS)
        while day <= LAST_DAY and idle <= most:
            match = self.days.next_day(day)
            if match is None:
                return
            idle += 1
            if match == day:
                idle = 0
                yield day, (0,)
                day += step
            else:
                day = _from(match, origin, step)


def month_of(day: int) -> int:
    """The month of a day, as 12 × year + month, counted from 0."""
    if day > LAST_DAY:
        return (LAST_YEAR + 1) * 12
    found = date.fromordinal(day + EPOCH_DAY)
    return found.year * 12 + found.month - 1


def _from(value: int, origin: int, step: int) -> int:
    """The first number from `value` on that is whole steps away from the origin."""
    return value + (origin - value) % step if value > origin else origin


def _places(positions: tuple[int, ...], length: int) -> list[int]:
    """The places, counted from 0, that BYSETPOS picks of a list of that length."""
    places = {each - 1 if each > 0 else length + each for each in positions}
    return sorted(place for place in places if 0 <= place < length)


def _rank(run: Run) -> tuple[int, bool]:
    return run.instant, run.moved
