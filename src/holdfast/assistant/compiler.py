"""From slots to a schedule: the one place where words become dates and rules.

Both planners, the grammar and a model, end here. What cannot be understood, or contradicts itself,
becomes a refusal that names the fields; the compiler never guesses to please.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from holdfast.assistant.bounds import read_bounds
from holdfast.assistant.clocks import resolve
from holdfast.assistant.elapsed import elapsed_recurrence
from holdfast.assistant.once import check_lead, once_at, several, soon
from holdfast.assistant.plan import Plan, Refusal, Refused, refusal
from holdfast.assistant.present import Present
from holdfast.assistant.recurring import Recurrence, wall_recurrence
from holdfast.assistant.slots import Clock, Half, Line, Slots
from holdfast.assistant.zone_names import find_zone_name
from holdfast.errors import InvalidOption


def compile_slots(
    slots: Slots, now: datetime, tz: str, *, half: Half | None = None
) -> Plan | Refusal:
    """The schedule that slots mean at `now` for a user in `tz`, or why there is none.

    Args:
        slots: what was said.
        now: an aware time; "today", "tomorrow" and what is past are judged by it.
        tz: the user's zone, an IANA name. A zone in the slots wins over it.
        half: which half of the day an hour without am or pm falls in, when it replaces a time.
    """
    if slots.trouble is not None:
        return refusal(slots.trouble)
    try:
        zone = zone_of(slots, tz)
        present = Present(instant=now.astimezone(UTC), zone=ZoneInfo(zone))
        return _compile(slots, present, zone, half)
    except Refused as refused:
        return refused.refusal
    except (InvalidOption, OverflowError, ValueError):
        # A rule or date beyond what schedules can hold: nothing a user would have meant.
        return refusal("not_understood")


def zone_of(slots: Slots, tz: str) -> str:
    """The IANA name of the zone that counts."""
    if slots.zone is None or slots.zone == "user":
        return tz
    found = find_zone_name(slots.zone)
    if found is None:
        raise Refused("unknown_zone")
    return found


def _compile(slots: Slots, present: Present, zone: str, half: Half | None) -> Plan:
    if not slots.has_schedule:
        at = soon(present)
        return _plan(slots, at, zone, assumptions=("no time was given: in 5 minutes",))
    if slots.recurs or any(line.sub for line in slots.lines):
        found = _recurrence(slots, present)
        return _plan(slots, found.start, zone, found, _assumed(slots))
    if slots.until or slots.length or slots.within or slots.count or slots.start:
        return _plan_of_bounded(slots, present, zone, half)
    if any(line.window is not None for line in slots.lines):
        raise Refused("vague_time", "time", "schedule")
    walls = once_at(slots, present, half=half)
    check_lead(walls[0], present)
    if len(walls) > 1:
        found = several(walls)
        return _plan(slots, found.start, zone, found, _assumed(slots))
    return _plan(slots, walls[0], zone, None, _assumed(slots))


def _plan_of_bounded(slots: Slots, present: Present, zone: str, half: Half | None) -> Plan:
    """Bounds without a recurrence: a start alone is a single run, anything else is unclear."""
    only_start = not (slots.until or slots.length or slots.within or slots.count)
    if only_start and slots.start is not None and not slots.lines:
        days = () if slots.start.day is None else (slots.start.day,)
        times = () if slots.start.clock is None else (slots.start.clock,)
        once = replace(slots, start=None, lines=(Line(days=days, times=times),))
        return _compile(once, present, zone, half)
    raise Refused("vague_recurrence", "recurrence", "schedule", "end")


def _recurrence(slots: Slots, present: Present) -> Recurrence:
    if slots.offset or slots.shift or any(line.days for line in slots.lines):
        raise Refused("contradiction", "recurrence", "date")
    bounds = read_bounds(slots, present)
    lines = [line for line in slots.lines if line.sub is not None]
    if lines and all(line.window is None for line in lines):
        return elapsed_recurrence(slots, present, bounds)
    if any(line.window is not None and line.sub is None for line in slots.lines):
        raise Refused("vague_time", "time", "recurrence")
    if any(line.sub is not None and line.window is None for line in slots.lines):
        raise Refused("contradiction", "recurrence")
    return wall_recurrence(slots, present, bounds)


def _plan(
    slots: Slots,
    start: datetime,
    zone: str,
    found: Recurrence | None = None,
    assumptions: tuple[str, ...] = (),
) -> Plan:
    return Plan(
        dtstart=start,
        tz=zone,
        rules=() if found is None else found.rules,
        exdate=() if found is None else found.exdate,
        purpose=slots.purpose,
        assumptions=assumptions,
    )


def _assumed(slots: Slots) -> tuple[str, ...]:
    """What was filled in by convention, in words for people to check."""
    said = [clock for line in slots.lines for clock in line.times]
    found: list[str] = []
    started = slots.start is not None and slots.start.clock is not None
    stepping = any(each.sub for each in slots.lines)
    if slots.lines and not (said or started or stepping or slots.offset):
        found.append("no time of day was given: 09:00")
    for clock in said:
        if _is_guess(clock, said):
            part = "morning" if resolve([clock])[0].hour < 12 else "afternoon"
            shown = f"{clock.hour}:{clock.minute:02}" if clock.minute else str(clock.hour)
            found.append(f"{shown} is taken as the {part}")
        if clock.hour is None and clock.part is not None:
            time = resolve([clock])[0]
            found.append(f"{clock.part.replace('_', ' ')} was read as {time.hour:02}:00")
    return tuple(dict.fromkeys(found))


def _is_guess(clock: Clock, said: list[Clock]) -> bool:
    if clock.hour is None or clock.half is not None or clock.part is not None:
        return False
    return not any(each.written or (each.hour or 0) > 12 for each in said) and clock.hour <= 11
