"""The runs of a whole schedule: the union of its rules and dates, without what is excluded.

Runs are a set of instants: two rules that meet make one run. EXDATE wins over everything. COUNT,
`max_runs` and BYSETPOS are counted before it, so that skipping a run does not add one at the end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from holdfast.errors import InvalidOption
from holdfast.recurrence.compiling import Source
from holdfast.recurrence.elapsed_rule import ElapsedRule
from holdfast.recurrence.moments import Moment, last_instant, local_text
from holdfast.recurrence.rules import MOST_COUNTED
from holdfast.recurrence.wall_rule import Run
from holdfast.recurrence.zones import (
    DAY,
    FIRST_INSTANT,
    LAST_INSTANT,
    Gap,
    Overlap,
    Zone,
    to_instant,
    to_wall,
)

SAMPLE: Final = 600
"""How many runs `shortest_gap` looks at: more than a year of daily ones, so that the changes of the
clock are among them."""


class Runs:
    """Answers when a schedule runs. Instants in seconds."""

    __slots__ = (
        "_dates",
        "_excluded",
        "_excluded_days",
        "_gap",
        "_last",
        "_overlap",
        "_sources",
        "zone",
    )

    def __init__(self, sources: Sequence[Source], zone: Zone, gap: Gap, overlap: Overlap) -> None:
        self.zone = zone
        self._sources = tuple(sources)
        self._gap: Gap = gap
        self._overlap: Overlap = overlap
        self._dates: tuple[Run, ...] = ()
        self._excluded: frozenset[int] = frozenset()
        self._excluded_days: frozenset[int] = frozenset()
        self._last = LAST_INSTANT

    def add_dates(self, moments: Iterable[Moment], clock: int) -> None:
        """Add single runs; a date runs at the time of day of the schedule."""
        found = {run.instant: run for run in self._dates}
        for moment in moments:
            for run in self._runs_of(moment, clock):
                found[run.instant] = run
        self._dates = tuple(sorted(found.values()))

    def _runs_of(self, moment: Moment, clock: int) -> list[Run]:
        if isinstance(moment, datetime) and moment.tzinfo is not None:
            instant = to_instant(moment)
            return [Run(instant, self.zone.wall(instant), False)]
        wall = to_wall(moment) if isinstance(moment, datetime) else _midnight(moment) + clock
        before, after = self.zone.offsets(wall)
        instants = self.zone.instants(wall, self._gap, self._overlap)
        return [Run(instant, wall, before < after) for instant in instants]

    def exclude(self, moments: Iterable[Moment]) -> None:
        """Leave out instants, wall times and whole days."""
        instants, days = set(), set()
        for moment in moments:
            if not isinstance(moment, datetime):
                days.add(_midnight(moment) // DAY)
            elif moment.tzinfo is not None:
                instants.add(to_instant(moment))
            else:
                instants.update(self.zone.instants(to_wall(moment), "shift", self._overlap))
        self._excluded, self._excluded_days = frozenset(instants), frozenset(days)

    def end(self, until: Moment | None, max_runs: int | None) -> None:
        """Set the bounds of the whole schedule; refused if nothing is left before `until`."""
        if until is not None:
            self._last = min(self._last, last_instant(until, self.zone, self._overlap))
            first = self._next(FIRST_INSTANT)
            if first is None:
                raise InvalidOption(
                    "until",
                    "expected a time from the first run on, "
                    f"got {local_text(self._last, self.zone)}: it does not run by then",
                )
        if max_runs is not None:
            self._last = min(self._last, self._nth(max_runs))

    def _nth(self, number: int) -> int:
        only = self._sources[0] if len(self._sources) == 1 and not self._dates else None
        if isinstance(only, ElapsedRule) and only.is_plain:
            found = only.nth(number)
            return self._last if found is None else found
        if number > MOST_COUNTED:
            raise InvalidOption(
                "max_runs",
                f"expected a whole number from 1 to {MOST_COUNTED:,} for rules and cron lines, "
                f"got {number}",
            )
        instant = FIRST_INSTANT
        for _ in range(number):
            run = self._next(instant)
            if run is None:
                return self._last
            instant = run.instant
        return instant

    def next_after(self, after: int) -> Run | None:
        """The first run later than an instant."""
        run = self._next(after)
        while run is not None and (self._excluded or self._excluded_days):
            day = self.zone.wall(run.instant) // DAY
            if day in self._excluded_days:
                run = self._next(max(run.instant, self.zone.day_start(day + 1) - 1))
            elif run.instant in self._excluded:
                run = self._next(run.instant)
            else:
                break
        return run

    def _next(self, after: int) -> Run | None:
        """The same, exclusions not yet looked at."""
        best: Run | None = None
        for source in self._sources:
            run = source.next_after(after)
            if run is not None and (best is None or _rank(run) < _rank(best)):
                best = run
        if self._dates:
            place = bisect_right(self._dates, after, key=lambda each: each.instant)
            if place < len(self._dates):
                run = self._dates[place]
                best = run if best is None or _rank(run) < _rank(best) else best
        return best if best is not None and best.instant <= self._last else None

    def shortest_gap(self) -> int | None:
        """The smallest number of seconds between two runs; None if there are not two."""
        if len(self._sources) == 1 and not self._dates:
            only = self._sources[0]
            if isinstance(only, ElapsedRule) and only.is_plain and not self._excluded_days:
                first = self.next_after(FIRST_INSTANT)
                second = None if first is None else self.next_after(first.instant)
                return only.step if second is not None else None
        instants, after = [], FIRST_INSTANT
        for _ in range(SAMPLE):
            run = self.next_after(after)
            if run is None:
                break
            after = run.instant
            instants.append(after)
        gaps = [late - early for early, late in pairwise(instants)]
        shortest = min(gaps, default=None)
        for date in self._dates[:SAMPLE]:
            shortest = self._shorter_beside(date.instant, shortest)
        return shortest

    def _shorter_beside(self, instant: int, shortest: int | None) -> int | None:
        """Single dates may lie far from the sample: look at the runs on both sides of one."""
        window = DAY * 366 if shortest is None else shortest
        beside = [instant - window - 1]
        while (run := self.next_after(beside[-1])) and run.instant <= instant + window:
            beside.append(run.instant)
            if len(beside) > SAMPLE:
                break
        gaps = [late - early for early, late in pairwise(beside[1:])]
        return min([*gaps, *([] if shortest is None else [shortest])], default=None)


def _midnight(moment: Moment) -> int:
    return to_wall(datetime(moment.year, moment.month, moment.day))  # noqa: DTZ001 - a wall time


def _rank(run: Run) -> tuple[int, bool]:
    return run.instant, run.moved
