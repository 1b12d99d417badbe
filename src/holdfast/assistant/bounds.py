"""Where a recurrence begins and ends: starts, ends, lengths, counts and calendar periods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from holdfast.assistant.clocks import resolve
from holdfast.assistant.days import add_months, is_fixed, period, resolve_day
from holdfast.assistant.plan import Refused
from holdfast.assistant.present import DAY, SECOND, Present, midnight
from holdfast.assistant.slots import Amount, Point, Slots
from holdfast.assistant.zone_names import find_zone_name

_ELAPSED = {"second": 1, "minute": 60, "hour": 3600}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """`start` is a wall time, `end` the last instant that may run; `anchored` says that the start
    was given with a day, which then stands for days that a rule leaves open.
    """

    start: datetime | None = None
    end: datetime | None = None
    anchored: bool = False


def read_bounds(slots: Slots, present: Present) -> Bounds:
    """Start and end, as far as they do not depend on the first run."""
    start = None if slots.start is None else start_of(slots.start, present)
    end = None if slots.until is None else _end_of(slots.until, present, start)
    if slots.within is not None:
        first, behind = period(slots.within.unit, slots.within.number, present.today)
        if start is None or start < midnight(first):
            start = midnight(first)
        last = present.to_instant(midnight(behind)) - SECOND
        end = last if end is None else min(end, last)
    if end is not None and end <= present.instant:
        raise Refused("no_end")
    anchored = slots.start is not None and slots.start.day is not None
    return Bounds(start=start, end=end, anchored=anchored)


def start_of(point: Point, present: Present) -> datetime:
    """The wall time of a start: a day begins at midnight, a time alone is the next one."""
    times = resolve([point.clock]) if point.clock is not None else ()
    if point.day is None:
        at = times[0].on(midnight(present.today))
        return at if present.is_ahead(at) else at + DAY
    day = resolve_day(
        point.day,
        present.today,
        lambda each: present.is_ahead(
            times[0].on(midnight(each)) if times else midnight(each) + DAY - SECOND
        ),
    )
    at = times[0].on(midnight(day)) if times else midnight(day)
    if is_fixed(point.day) and day < present.today:
        raise Refused("past")
    return at


def _end_of(point: Point, present: Present, start: datetime | None) -> datetime:
    begin = (
        present if start is None else Present(instant=present.to_instant(start), zone=present.zone)
    )
    if begin.instant < present.instant:
        begin = present
    times = resolve([point.clock]) if point.clock is not None else ()
    if point.day is None:
        at = times[0].on(midnight(begin.today))
        return present.to_instant(at if begin.is_ahead(at) else at + DAY)
    today = present.today if point.day.kind in ("relative", "offset") else begin.today
    try:
        day = resolve_day(point.day, today, lambda each: each >= begin.today)
    except Refused as refused:
        if "time" in refused.refusal.fields:
            raise Refused("no_day", "end", "date") from None
        raise
    at = times[0].on(midnight(day)) if times else midnight(day) + DAY - SECOND
    if point.zone is not None:
        return _elsewhere(at, point.zone)
    return present.to_instant(at)


def _elsewhere(wall: datetime, said: str) -> datetime:
    zone = find_zone_name(said)
    if zone is None:
        raise Refused("unknown_zone")
    return wall.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def end_of_length(length: Amount, first: datetime, present: Present) -> datetime:
    """The last instant of `length` counted from the first run, whose own repeat is outside."""
    if length.number <= 0:
        raise Refused("no_end")
    seconds = _ELAPSED.get(length.unit)
    if seconds is not None:
        return present.to_instant(first) + timedelta(seconds=seconds * length.number) - SECOND
    return present.to_instant(add_units(first, length)) - SECOND


def add_units(wall: datetime, length: Amount) -> datetime:
    """A wall time so many calendar units later."""
    number = length.number
    match length.unit:
        case "day":
            day = wall.date() + timedelta(days=number)
        case "week" | "weekend":
            day = wall.date() + timedelta(weeks=number)
        case "month":
            day = add_months(wall.date(), number)
        case "quarter":
            day = add_months(wall.date(), 3 * number)
        case "year":
            day = add_months(wall.date(), 12 * number)
        case "workday":
            day = wall.date()
            for _ in range(min(number, 5000)):
                day += timedelta(days=1 if day.weekday() < 4 else 7 - day.weekday())
        case _:
            raise Refused("not_understood", "end")
    return datetime.combine(day, wall.time())
