"""The clocks of a zone as a VTIMEZONE: when they change, and by how much.

Written here and not by the library, which gives the onset of summer time in the time after the
change, where RFC 5545 (3.6.5) wants that before it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from icalendar import Timezone, TimezoneDaylight, TimezoneStandard

from holdfast.recurrence.zones import Zone, find_zone, to_datetime, to_instant

DAY: Final = 86_400


class _Change(NamedTuple):
    """How the clocks change: from this offset to that, and what it is called after."""

    before: int
    after: int
    name: str
    is_dst: bool


def timezone_of(tz: str, first: date, last: date) -> Timezone:
    """A zone between two days."""
    zone = find_zone(tz, recurring=False)
    component = Timezone()
    component.add("tzid", tz)
    begin, end = _midnight(first), _midnight(last)
    offset = zone.offset(begin)
    start = _Change(offset, offset, *_names(zone, begin))
    component.add_component(_observance(start, [begin]))
    onsets: dict[_Change, list[int]] = {}
    for at in _changes(zone, begin, end):
        change = _Change(zone.offset(at - 1), zone.offset(at), *_names(zone, at))
        onsets.setdefault(change, []).append(at)
    for change, instants in onsets.items():
        component.add_component(_observance(change, instants))
    return component


def _changes(zone: Zone, begin: int, end: int) -> list[int]:
    return [
        zone.change_between(early, early + DAY)
        for early in range(begin, end, DAY)
        if zone.offset(early) != zone.offset(early + DAY)
    ]


def _observance(change: _Change, onsets: list[int]) -> TimezoneStandard | TimezoneDaylight:
    component = TimezoneDaylight() if change.is_dst else TimezoneStandard()
    walls = [to_datetime(at + change.before).replace(tzinfo=None) for at in onsets]
    component.add("dtstart", walls[0])
    if walls[1:]:
        component.add("rdate", walls[1:])
    component.add("tzname", change.name)
    component.add("tzoffsetfrom", timedelta(seconds=change.before))
    component.add("tzoffsetto", timedelta(seconds=change.after))
    return component


def _names(zone: Zone, at: int) -> tuple[str, bool]:
    local = to_datetime(at).astimezone(zone.info)
    return local.tzname() or zone.name, bool(local.dst())


def _midnight(day: date) -> int:
    return to_instant(datetime.combine(day, time(), tzinfo=UTC))
