"""Makes runs of rules: what a schedule says, turned into what answers questions, and refused if it
never runs at all.

What was compiled is kept: schedules are read from records again and again, and the ends of counted
rules take time to find.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final, Protocol

from holdfast.errors import InvalidOption
from holdfast.recurrence.cron import Cron
from holdfast.recurrence.elapsed_rule import ElapsedRule
from holdfast.recurrence.moments import last_instant, local_text, write_moment
from holdfast.recurrence.rules import MOST_COUNTED, Freq, Rule
from holdfast.recurrence.wall_rule import Run, WallRule
from holdfast.recurrence.year_days import YearDays, rule_days
from holdfast.recurrence.zones import (
    DAY,
    FIRST_INSTANT,
    Gap,
    Overlap,
    Zone,
    load_zone,
    to_wall,
    tz_version,
)

EARLIEST: Final = FIRST_INSTANT + DAY * 366


class Source(Protocol):
    """Something that runs again and again."""

    def next_after(self, after: int) -> Run | None:
        """The first run later than an instant."""


@lru_cache(maxsize=512)
def compile_rule(
    rule: Rule, dtstart: datetime, second_pass: bool, zone: Zone, gap: Gap, overlap: Overlap
) -> Source:
    """The runs of an RRULE; refused if there are none."""
    start = start_instant(dtstart, second_pass, zone)
    until = None if rule.until is None else last_instant(rule.until, zone, overlap)
    if until is not None and until < start:
        assert rule.until is not None
        raise InvalidOption(
            "until",
            f"expected a time from the start on, which is {local_text(start, zone)}, "
            f"got {write_moment(rule.until)}",
        )
    if rule.freq.is_elapsed:
        return _elapsed(rule, start, zone, until)
    return _on_the_wall(rule, dtstart, zone, gap, overlap, until)


def start_instant(dtstart: datetime, second_pass: bool, zone: Zone) -> int:
    """The instant of a start: behind the gap if there is one, the first of two unless told."""
    return zone.instants(to_wall(dtstart), "shift", "second" if second_pass else "first")[0]


def _on_the_wall(
    rule: Rule, dtstart: datetime, zone: Zone, gap: Gap, overlap: Overlap, until: int | None
) -> WallRule:
    full = rule.explicit(dtstart)
    clocks = tuple(
        hour * 3600 + minute * 60 + second
        for hour in full.byhour
        for minute in full.byminute
        for second in full.bysecond
    )
    made = WallRule(
        freq=full.freq,
        interval=full.interval,
        start=to_wall(dtstart),
        days=rule_days(full),
        clocks=clocks,
        positions=full.bysetpos,
        week_start=full.wkst,
        zone=zone,
        gap=gap,
        overlap=overlap,
        until=until,
    )
    if full.freq is Freq.DAILY and full.bysetpos:
        # Every day has the same times: what BYSETPOS picks of them is known already.
        kept = {each - 1 if each > 0 else len(clocks) + each for each in full.bysetpos}
        made.clocks = tuple(clock for n, clock in enumerate(clocks) if n in kept)
        made.positions = ()
        if not made.clocks:
            raise _never(rule, f"a day has {len(clocks)} of these, and BYSETPOS asks for more")
    refuse_no_runs(made, rule, until, zone)
    if rule.count is not None:
        made.last_wall = made.nth_wall(rule.count)
    return made


_UNITS: Final = {Freq.SECONDLY: 1, Freq.MINUTELY: 60, Freq.HOURLY: 3600}


def _elapsed(rule: Rule, start: int, zone: Zone, until: int | None) -> ElapsedRule:
    unit = _UNITS[rule.freq]
    seconds = rule.bysecond
    if rule.freq is Freq.HOURLY and rule.byminute:
        length, seconds = 3600, seconds or (zone.wall(start) % 60,)
    elif rule.freq is not Freq.SECONDLY and rule.bysecond:
        length = 60
    else:
        length = 1
    made = ElapsedRule(
        zone=zone,
        start=start,
        anchor=start - zone.wall(start) % length,
        step=unit * rule.interval,
        length=length,
        unit=unit,
        days=rule_days(rule),
        hours=rule.byhour,
        minutes=rule.byminute,
        seconds=seconds,
        until=until,
    )
    if rule.bysetpos:
        most = {1: 1, 60: len(seconds), 3600: len(rule.byminute) * len(seconds)}[length]
        made.positions = tuple(each for each in rule.bysetpos if abs(each) <= most)
        if not made.positions:
            raise _never(rule, f"a period has {most} of these at most, and BYSETPOS asks for more")
    if not _can_meet(made):
        raise _never(rule, "its steps from the start never meet the times of its BY parts")
    refuse_no_runs(made, rule, until, zone)
    if rule.count is not None:
        if rule.count > MOST_COUNTED and not made.is_plain:
            raise InvalidOption(
                "rrule",
                f"expected COUNT from 1 to {MOST_COUNTED:,} in a {rule.freq} rule with BY parts, "
                f"got {rule.count}",
            )
        try:
            last = made.nth(rule.count)
        except OverflowError:
            raise InvalidOption(
                "rrule",
                f"expected a smaller COUNT, as {rule.text} runs too rarely to find its end, "
                f"got {rule.count}",
            ) from None
        made.until = last if last is not None else made.until
    return made


def _can_meet(rule: ElapsedRule) -> bool:
    """Whether the steps ever fall on the wanted times of day, under any offset of the zone."""
    month, horizon = 30 * DAY, max(rule.start, 0) + 80 * 365 * DAY
    if rule.meets(rule.zone.offset(rule.start)):
        return True
    return any(rule.meets(rule.zone.offset(each)) for each in range(rule.start, horizon, month))


def refuse_no_runs(source: Source, rule: Rule, until: int | None, zone: Zone) -> None:
    """Refuse a rule that does not run once."""
    if source.next_after(FIRST_INSTANT) is not None:
        return
    if until is not None:
        endless = replace(rule, until=None)
        raise InvalidOption(
            "until",
            f"expected a time from the first run on, got {local_text(until, zone)}: "
            f"{endless.text} does not run by then",
        )
    raise _never(rule, "no day in the calendar matches all of its parts")


def _never(rule: Rule, reason: str) -> InvalidOption:
    return InvalidOption(
        "rrule",
        f"expected a rule that runs at least once, got {rule.text}, which never does: {reason}",
    )


@lru_cache(maxsize=512)
def compile_cron(cron: Cron, start: int | None, zone: Zone, gap: Gap, overlap: Overlap) -> Source:
    """The runs of a cron line; refused if there are none."""
    begin = EARLIEST if start is None else start
    source: Source
    if cron.is_elapsed:
        source = ElapsedRule(
            zone=zone,
            start=begin,
            anchor=0,
            step=1,
            length=1,
            unit=1,
            days=YearDays(cron.matches_day),
            hours=cron.hours,
            minutes=cron.minutes,
            seconds=(0,),
        )
    else:
        source = WallRule(
            freq=Freq.DAILY,
            interval=1,
            start=zone.wall(begin),
            days=YearDays(cron.matches_day),
            clocks=tuple(
                hour * 3600 + minute * 60 for hour in cron.hours for minute in cron.minutes
            ),
            zone=zone,
            gap=gap,
            overlap=overlap,
        )
    if source.next_after(FIRST_INSTANT) is None:
        raise InvalidOption(
            "cron",
            f"expected a line that runs at least once, got {cron.text!r}, which never does: "
            "no day in the calendar matches it",
        )
    return source


def compile_steps(start: int, step: int, zone: Zone) -> ElapsedRule:
    """The runs of an interval: the start, and every step after it."""
    return ElapsedRule(
        zone=zone, start=start, anchor=start, step=step, length=1, unit=1, days=YearDays(None)
    )


def forget_zones() -> None:
    """Read the tz database anew from now on; schedules that exist keep what they have read.

    For processes that outlive an update of it, beside `zoneinfo.ZoneInfo.clear_cache()`.
    """
    for kept in (load_zone, compile_rule, compile_cron, tz_version):
        kept.cache_clear()
