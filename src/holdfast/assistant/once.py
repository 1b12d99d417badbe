"""Single runs: an offset from now, a day with a time, or a few days that do not recur."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from holdfast.assistant.bounds import add_units
from holdfast.assistant.clocks import NINE, Time, resolve
from holdfast.assistant.days import is_fixed, resolve_day
from holdfast.assistant.plan import Refused
from holdfast.assistant.present import Present, midnight
from holdfast.assistant.recurring import STEPS, Recurrence
from holdfast.assistant.rule_text import text_of
from holdfast.assistant.slots import Amount, Clock, Day, Half, Line, Slots

LEAD = timedelta(seconds=60)
DEFAULT_DELAY = timedelta(minutes=5)
_MOST_AHEAD = timedelta(days=366 * 200)


def soon(present: Present) -> datetime:
    """When a request without a time runs."""
    return present.to_wall(present.instant + DEFAULT_DELAY)


def once_at(slots: Slots, present: Present, *, half: Half | None = None) -> list[datetime]:
    """The wall times of requests that do not recur, sorted."""
    found = set[datetime]()
    if slots.offset and not slots.lines:
        found = {from_now(slots.offset, present)}
    elif slots.offset and len(slots.lines) == 1 and not slots.lines[0].days:
        found = set(_offset_with_times(slots.offset, slots.lines[0], present, half))
    elif slots.offset:
        raise Refused("contradiction", "time", "date")
    for line in slots.lines if not slots.offset else ():
        found |= set(_line_times(line, present, half))
    moved = {shifted(each, slots.shift, present) for each in found}
    if moved != found and not any(map(present.is_ahead, moved)):
        raise Refused("past")
    return sorted(moved)


def from_now(offset: tuple[Amount, ...], present: Present) -> datetime:
    """Calendar units keep the time on the wall; hours and shorter are elapsed time."""
    try:
        wall = present.wall
        for each in offset:
            if each.unit not in STEPS:
                wall = _add(wall, each)
        instant = present.instant if wall == present.wall else present.to_instant(wall)
        seconds = sum(each.number * STEPS[each.unit] for each in offset if each.unit in STEPS)
        if timedelta(seconds=seconds) > _MOST_AHEAD:
            raise Refused("impossible_date")
        return present.to_wall(instant + timedelta(seconds=seconds))
    except (OverflowError, ValueError):
        raise Refused("impossible_date") from None


def _add(wall: datetime, amount: Amount) -> datetime:
    day = Day(kind="offset", number=amount.number, unit=amount.unit)
    return datetime.combine(resolve_day(day, wall.date(), lambda _: True), wall.time())


def _offset_with_times(
    offset: tuple[Amount, ...], line: Line, present: Present, half: Half | None
) -> list[datetime]:
    if any(each.unit in STEPS for each in offset):
        raise Refused("contradiction", "time")
    day = present.wall
    for each in offset:
        day = _add(day, each)
    return [each.on(midnight(day.date())) for each in resolve(line.times, half=half)]


def _line_times(line: Line, present: Present, half: Half | None) -> list[datetime]:
    times = resolve(line.times, half=half) if line.times else (NINE,)
    if not line.days:
        return [_next_at(each, present) for each in times]
    return [_on_day(day, each, present) for day in line.days for each in times]


def _next_at(time: Time, present: Present) -> datetime:
    """A time alone: today when it is still ahead, else tomorrow."""
    at = time.on(midnight(present.today)) - timedelta(days=time.days)
    return at if present.is_ahead(at) else at + timedelta(days=1)


def _on_day(day: Day, time: Time, present: Present) -> datetime:
    def ahead(each: date) -> bool:
        return present.is_ahead(time.on(midnight(each)))

    at = time.on(midnight(resolve_day(day, present.today, ahead)))
    if not present.is_ahead(at):
        if day.kind == "relative" and day.number == 0:
            raise Refused("past", "nextExecutionTime", "time")
        if not is_fixed(day) and day.kind == "weekday":
            raise Refused("past")
        raise Refused("past", "nextExecutionTime", "date", "time")
    return at


def shifted(wall: datetime, shift: tuple[Amount, ...], present: Present) -> datetime:
    """A wall time moved by what was said: "15 minutes before", "an hour later"."""
    for each in shift:
        if each.unit in STEPS:
            seconds = timedelta(seconds=each.number * STEPS[each.unit])
            wall = present.to_wall(present.to_instant(wall) + seconds)
        else:
            wall = _add(wall, each) if each.unit == "workday" else add_units(wall, each)
    return wall


def several(walls: list[datetime]) -> Recurrence:
    """A few single runs as rules that each run once."""
    rules = [
        text_of(
            {
                "FREQ": "YEARLY",
                "COUNT": "1",
                "BYMONTH": str(each.month),
                "BYMONTHDAY": str(each.day),
                "BYHOUR": str(each.hour),
                "BYMINUTE": str(each.minute),
            }
        )
        for each in walls
    ]
    return Recurrence(rules=tuple(rules), start=walls[0])


def check_lead(wall: datetime, present: Present) -> None:
    """Refuse a run that is past or nearer than the minimum lead."""
    instant = present.to_instant(wall) if not wall.fold else wall.replace(tzinfo=present.zone)
    if instant < present.instant + LEAD:
        is_past = instant < present.instant
        raise Refused("past" if is_past else "too_soon", "nextExecutionTime", "time")


def clock_of(wall: datetime) -> Clock:
    """A wall time as a clock of 24 hours."""
    return Clock(hour=wall.hour, minute=wall.minute, second=wall.second, written=True)
