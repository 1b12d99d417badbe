"""Recurrence rules as text, and their first slots.

A rule is kept as a mapping of its parts until it is complete. Slots are searched on the wall clock:
the engine of `holdfast.recurrence` is asked in UTC, where wall times and instants are the same, so
that a time which the local clock skips keeps the time that was meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from holdfast.assistant.clocks import Time
from holdfast.assistant.present import SECOND, Present
from holdfast.recurrence import Schedule

Parts = Mapping[str, str]

CODES: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_ORDER: Final = (
    "FREQ", "INTERVAL", "COUNT", "UNTIL", "BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS",
    "BYHOUR", "BYMINUTE", "BYSECOND",
)  # fmt: skip


def text_of(parts: Parts) -> str:
    """The rule as RRULE text, its parts in a fixed order."""
    return ";".join(f"{name}={parts[name]}" for name in _ORDER if name in parts)


def weekday_codes(days: Iterable[int]) -> str:
    """`MO,WE` for 0 and 2."""
    return ",".join(CODES[day] for day in sorted(set(days)))


def numbers(values: Iterable[int]) -> str:
    """`1,15`."""
    return ",".join(map(str, sorted(set(values))))


def with_times(days: Parts, times: Sequence[Time]) -> list[Parts]:
    """One rule for each set of hours that share their minutes: BYHOUR and BYMINUTE cross."""
    if "BYSETPOS" in days:
        # Positions count times too, so a rule with them may hold one time only.
        return [{**days, **_clock_parts([each.hour], [each.minute])} for each in times]
    minutes: dict[int, set[int]] = {}
    for each in times:
        minutes.setdefault(each.hour, set()).add(each.minute)
    groups: dict[tuple[int, ...], list[int]] = {}
    for hour, found in sorted(minutes.items()):
        groups.setdefault(tuple(sorted(found)), []).append(hour)
    return [{**days, **_clock_parts(hours, list(found))} for found, hours in groups.items()]


def _clock_parts(hours: list[int], minutes: list[int]) -> dict[str, str]:
    return {"BYHOUR": numbers(hours), "BYMINUTE": numbers(minutes)}


def wall_slots(rules: Sequence[Parts], start: datetime) -> Iterator[datetime]:
    """Wall times of the union of wall-clock rules from a wall time on, in order."""
    schedule = Schedule.rrule("\n".join(f"RRULE:{text_of(each)}" for each in rules), dtstart=start)
    after = start.replace(tzinfo=UTC) - SECOND
    while (found := schedule.next_after(after)) is not None:
        yield found.replace(tzinfo=None)
        after = found


def first_slot(rules: Sequence[Parts], present: Present, start: datetime | None) -> datetime | None:
    """The first wall time that is ahead, and not before `start` if given."""
    begin = present.wall - timedelta(hours=3)
    if start is not None:
        begin = max(begin, start)
    # Seconds of the search's start would otherwise be taken over by the rules.
    begin = begin.replace(second=0, microsecond=0) + timedelta(minutes=1 if begin.second else 0)
    for found in wall_slots(rules, begin):
        if present.is_ahead(found):
            return found
    return None


def slots_between(rules: Sequence[Parts], first: datetime, day: datetime) -> list[datetime]:
    """The wall times of rules that begin at `first`, on the day that begins at `day`."""
    schedule = Schedule.rrule("\n".join(f"RRULE:{text_of(each)}" for each in rules), dtstart=first)
    begin = day.replace(tzinfo=UTC)
    return [
        each.replace(tzinfo=None) for each in schedule.between(begin, begin + timedelta(days=1))
    ]
