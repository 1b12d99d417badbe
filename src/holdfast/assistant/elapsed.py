"""Recurrences in elapsed time: every so many minutes or hours, counted from now or from a phase."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from holdfast.assistant.bounds import Bounds, end_of_length
from holdfast.assistant.days import resolve_day
from holdfast.assistant.plan import Refused
from holdfast.assistant.present import DAY, Present, midnight
from holdfast.assistant.recurring import STEPS, Recurrence
from holdfast.assistant.rule_text import numbers, text_of, weekday_codes
from holdfast.assistant.slots import Line, Slots

_MOST_LEFT_OUT = 2000


def elapsed_recurrence(slots: Slots, present: Present, bounds: Bounds) -> Recurrence:
    """The schedule of one line that steps in elapsed time."""
    if len(slots.lines) != 1:
        raise Refused("contradiction", "recurrence")
    line = slots.lines[0]
    assert line.sub is not None
    step = line.sub.number * STEPS[line.sub.unit]
    if step < 60:
        raise Refused("vague_recurrence", "recurrence")
    _check(line)
    if slots.except_times:
        raise Refused("not_understood", "recurrence", "time")
    rule = _step_parts(step) | _limits(line, slots)
    first = _first(line, step, present, bounds)
    if len(line.minutes) > 1:
        rule |= {"FREQ": "MINUTELY", "INTERVAL": "1", "BYMINUTE": numbers(line.minutes)}
        step = 60
    first = _first_allowed(first, step, rule, present)
    rule |= _end(slots, present, bounds, first)
    wall = present.to_wall(first)
    return Recurrence(
        rules=(text_of(rule),), start=wall, exdate=_left_out(slots, present, first, step)
    )


def _check(line: Line) -> None:
    if line.times or line.nths or line.yearly:
        raise Refused("contradiction", "recurrence", "time")
    if line.every is not None and (line.every.number != 1 or line.every.unit not in _DAY_UNITS):
        raise Refused("contradiction", "recurrence")


_DAY_UNITS = ("day", "workday", "weekend", "week")


def _step_parts(step: int) -> dict[str, str]:
    for size, freq in ((3600, "HOURLY"), (60, "MINUTELY"), (1, "SECONDLY")):
        if step % size == 0:
            return {"FREQ": freq, "INTERVAL": str(step // size)}
    raise AssertionError(step)


def _limits(line: Line, slots: Slots) -> dict[str, str]:
    unit = line.every.unit if line.every is not None else "day"
    days: Sequence[int] = line.weekdays
    if not days and unit in ("workday", "weekend"):
        days = range(5) if unit == "workday" else range(5, 7)
    if slots.except_weekdays:
        days = [each for each in days or range(7) if each not in slots.except_weekdays]
        if not days:
            raise Refused("contradiction", "recurrence", "date")
    months: Sequence[int] = line.months
    if slots.except_months:
        months = [each for each in months or range(1, 13) if each not in slots.except_months]
    found = {"BYDAY": weekday_codes(days)} if days else {}
    if months:
        found["BYMONTH"] = numbers(months)
    if line.monthdays:
        found["BYMONTHDAY"] = numbers(line.monthdays)
    return found


def _first(line: Line, step: int, present: Present, bounds: Bounds) -> datetime:
    """One interval from now, unless a start or minutes past the hour fix the phase."""
    begin = present.instant
    if bounds.start is not None and present.is_ahead(bounds.start):
        begin = present.to_instant(bounds.start)
        if not line.minutes:
            return begin
        begin -= timedelta(seconds=1)
    if line.minutes:
        wall = present.to_wall(begin).replace(second=0, microsecond=0)
        for ahead in range(1, 61):
            found = wall + timedelta(minutes=ahead)
            if found.minute in line.minutes:
                return begin.replace(second=0, microsecond=0) + timedelta(minutes=ahead)
    return begin + timedelta(seconds=step)


def _first_allowed(first: datetime, step: int, rule: dict[str, str], present: Present) -> datetime:
    """The first time on the grid that the limits let through; whole days are jumped over."""
    for _ in range(5000):
        wall = present.to_wall(first)
        if not _day_allowed(wall, rule):
            behind = present.to_instant(midnight(wall.date()) + DAY)
            steps = -(-(behind - first) // timedelta(seconds=step))
            first += timedelta(seconds=step) * max(1, steps)
        elif "BYMINUTE" in rule and str(wall.minute) not in rule["BYMINUTE"].split(","):
            first += timedelta(seconds=step)
        else:
            return first
    raise Refused("impossible_date")


def _day_allowed(wall: datetime, rule: dict[str, str]) -> bool:
    return (
        ("BYDAY" not in rule or weekday_codes([wall.weekday()]) in rule["BYDAY"].split(","))
        and ("BYMONTH" not in rule or str(wall.month) in rule["BYMONTH"].split(","))
        and ("BYMONTHDAY" not in rule or str(wall.day) in rule["BYMONTHDAY"].split(","))
    )


def _end(slots: Slots, present: Present, bounds: Bounds, first: datetime) -> dict[str, str]:
    if slots.count is not None and slots.count < 1:
        raise Refused("no_end", "end", "recurrence")
    found = {"COUNT": str(slots.count)} if slots.count is not None else {}
    end = bounds.end
    if slots.length is not None:
        last = end_of_length(slots.length, present.to_wall(first), present)
        end = last if end is None else min(end, last)
    if end is None:
        return found
    if first > end:
        raise Refused("no_end")
    if found:
        raise Refused("contradiction", "end")
    return {"UNTIL": f"{end.astimezone(UTC):%Y%m%dT%H%M%SZ}"}


def _left_out(slots: Slots, present: Present, first: datetime, step: int) -> tuple[datetime, ...]:
    found: list[datetime] = []
    for day in slots.except_days:
        date = resolve_day(day, present.today, lambda each: each >= present.today)
        begin, end = (present.to_instant(midnight(date) + DAY * n) for n in (0, 1))
        steps = max(0, -(-(begin - first) // timedelta(seconds=step)))
        at = first + timedelta(seconds=step) * steps
        while at < end:
            found.append(present.to_wall(at))
            at += timedelta(seconds=step)
            if len(found) > _MOST_LEFT_OUT:
                raise Refused("not_understood", "recurrence")
    return tuple(found)
