"""A rule of hours, minutes or seconds: it steps in elapsed time, whatever the clock on the wall
does.

Two conditions must hold at once, and the search leaps from one to the other until both do:

- *The grid*: the instant lies in one of the rule's periods, whole intervals of elapsed time after
  the start. Every 6 hours stays every 6 hours when the clocks change.
- *The filter*: the local time of the instant passes the BY parts. Where an hour comes twice, it
  passes twice; where it is missing, it does not pass.

Without BYMINUTE and BYSECOND a period holds one instant, as far into it as the start is. With them
it holds every instant whose local minute and second are listed (they expand, as in the RFC's
table).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd
from typing import Final

from holdfast.recurrence.wall_rule import Run
from holdfast.recurrence.year_days import YearDays
from holdfast.recurrence.zones import DAY, FIRST_INSTANT, LAST_INSTANT, Zone

MOST_LEAPS: Final = 120_000
"""After so many leaps between grid and filter without a match there is none that anybody waits
for.
"""


@dataclass(slots=True, kw_only=True)
class ElapsedRule:
    """The runs of one rule; see the module. Times in seconds.

    `anchor` starts the first period, periods are `length` long and come every `step`; of each, the
    instants that pass the filter run. `unit` is the rule's own period, which BYSETPOS looks at.
    Empty lists pass everything.
    """

    zone: Zone
    start: int
    anchor: int
    step: int
    length: int
    unit: int
    days: YearDays
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    seconds: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    until: int | None = None
    _common: int = field(init=False)
    _residues: frozenset[int] | None = field(init=False)
    _leaps: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Work out whether steps and wanted times of day can meet at all, by their remainders.

        Steps of 24 hours from 09:00 come to 09:00 and, in summer, to 10:00, but never to 13:00.
        """
        self._common = gcd(self.step, DAY)
        clocks = {0}
        for size, wanted, every in (
            (3600, self.hours, 24),
            (60, self.minutes, 60),
            (1, self.seconds, 60),
        ):
            if size >= self.length:  # what is shorter than a period is found inside it
                parts = {each * size % self._common for each in wanted or range(every)}
                clocks = {(clock + part) % self._common for clock in clocks for part in parts}
        self._residues = frozenset(clocks) if self.hours or self.minutes or self.seconds else None

    def meets(self, offset: int) -> bool:
        """Whether steps and wanted times of day can meet while the zone has this offset."""
        if self._residues is None:
            return True
        wall = (self.anchor + offset) // self.length * self.length
        # After a change by half an hour a period lies in two hours of the wall.
        around = {wall, (self.anchor + offset + self.length - 1) // self.length * self.length}
        return any(each % self._common in self._residues for each in around)

    @property
    def is_plain(self) -> bool:
        """Whether every step is a run: there is no filter."""
        filtered = self.hours or self.minutes or self.seconds or self.positions
        return self.days.is_every_day and not filtered and self.length == 1

    def next_after(self, after: int) -> Run | None:
        """The first run later than an instant."""
        after = max(after, self.start - 1, FIRST_INSTANT)
        instant = self._next_picked(after + 1) if self.positions else self._next(after + 1)
        if instant is None or (self.until is not None and instant > self.until):
            return None
        return Run(instant, self.zone.wall(instant), False)

    def nth(self, number: int) -> int | None:
        """The instant of the n-th run, or None if the calendar ends before it.

        `OverflowError` if it is too far away to be found.
        """
        if self.is_plain:
            first = self._on_grid(self.start)
            instant = first + (number - 1) * self.step
            return instant if instant <= LAST_INSTANT else None
        after, began = self.start - 1, self._leaps
        for _ in range(number):
            run = self.next_after(after)
            if run is None:
                return None
            after = run.instant
            if self._leaps - began > MOST_LEAPS // 2:
                raise OverflowError(number)
        return after

    def _on_grid(self, instant: int) -> int:
        into = (instant - self.anchor) % self.step
        return instant if into < self.length else instant + self.step - into

    def _next(self, instant: int) -> int | None:
        """The first instant from this one on that is on the grid and passes the filter."""
        if self.is_plain:
            instant = self._on_grid(instant)
            return instant if instant <= LAST_INSTANT else None
        for leap in range(1, MOST_LEAPS):
            self._leaps += 1
            instant = self._on_grid(instant)
            if instant > LAST_INSTANT:
                return None
            wall = self.zone.wall(instant)
            wanted = self._passing_wall(wall)
            if wanted == wall:
                return instant
            if wanted is not None and self.length == 1 and wanted - wall <= self.step:
                instant += self.step  # nothing can be between two steps
            elif (passing := self._passing(instant)) is not None:
                instant = passing
            else:
                return None
            if leap % 8 == 0 and not self.meets(self.zone.offset(instant)):
                change = self._next_change(instant)
                if change is None:
                    return None
                instant = change
        return None

    def _next_change(self, instant: int) -> int | None:
        """The next instant at which the clock is moved, or None if it never is again."""
        offset, end = self.zone.offset(instant), max(instant, _RULES_ONLY) + 2 * 366 * DAY
        for later in range(instant + _WEEK, min(end, LAST_INSTANT), _WEEK):
            if self.zone.offset(later) != offset:
                return self.zone.change_between(later - _WEEK, later)
        return None

    def _next_picked(self, instant: int) -> int | None:
        """The same under BYSETPOS: of each period only some."""
        for _ in range(MOST_LEAPS):
            found = self._next(instant)
            if found is None:
                return None
            begin = found - (found - self._period_anchor) % self.step
            passing = list(self._within(begin, begin + self.unit))
            places = {each - 1 if each > 0 else len(passing) + each for each in self.positions}
            for place in sorted(places):
                if 0 <= place < len(passing) and passing[place] >= instant:
                    return passing[place]
            instant = begin + self.unit
        return None

    @property
    def _period_anchor(self) -> int:
        return self.anchor if self.length == self.unit else self.anchor - self.anchor % self.unit

    def _within(self, begin: int, end: int) -> Iterator[int]:
        found = self._next(begin)
        while found is not None and found < end:
            yield found
            found = self._next(found + 1)

    def _passing(self, instant: int) -> int | None:
        """The first instant from this one on whose local time passes the filter."""
        for _ in range(MOST_LEAPS):
            offset = self.zone.offset(instant)
            wall = instant + offset
            wanted = self._passing_wall(wall)
            if wanted == wall:
                return instant
            leap = LAST_INSTANT + 1 if wanted is None else self._instant_of(wanted, instant)
            # In the first pass of an overlap the clock comes back to wall times already passed.
            before, after = self.zone.offsets(wall)
            if before == offset and after < before:
                again = self.zone.change_between(instant, wall - after)
                leap = min(leap, again)
            if leap > LAST_INSTANT:
                return None
            instant = leap
        return None

    def _instant_of(self, wall: int, instant: int) -> int:
        """The first instant after `instant` at which the wall shows that, or has gone past it."""
        before, after = self.zone.offsets(wall)
        if before == after:
            return wall - before
        if before < after:
            return max(instant + 1, self.zone.change_between(wall - after, wall - before))
        later = [each for each in (wall - before, wall - after) if each > instant]
        return min(later, default=instant + 1)

    def _passing_wall(self, wall: int) -> int | None:
        day, clock = divmod(wall, DAY)
        if self.days.has(day):
            passing = self._passing_clock(clock)
            if passing is not None:
                return day * DAY + passing
        following = self.days.next_day(day + 1)
        if following is None:
            return None
        first = self._passing_clock(0)
        assert first is not None
        return following * DAY + first

    def _passing_clock(self, clock: int) -> int | None:
        """The first time of day from this one on that passes, or None if the day has no more."""
        hours, minutes, seconds = (
            self.hours or _HOURS,
            self.minutes or _SIXTY,
            self.seconds or _SIXTY,
        )
        hour, minute, second = clock // 3600, clock // 60 % 60, clock % 60
        second_at = bisect_left(seconds, second)
        if second_at == len(seconds):
            minute, second_at = minute + 1, 0
        minute_at = bisect_left(minutes, minute)
        if minute_at == len(minutes):
            hour, minute_at, second_at = hour + 1, 0, 0
        elif minutes[minute_at] != minute:
            second_at = 0
        hour_at = bisect_left(hours, hour)
        if hour_at == len(hours):
            return None
        if hours[hour_at] != hour:
            minute_at = second_at = 0
        return hours[hour_at] * 3600 + minutes[minute_at] * 60 + seconds[second_at]


_WEEK: Final = 7 * DAY
_RULES_ONLY: Final = 2**31
"""From 2038 on the tz database has yearly rules only: two years without a change are for ever."""

_HOURS: Final = tuple(range(24))
_SIXTY: Final = tuple(range(60))
