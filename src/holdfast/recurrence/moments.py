"""Reads the dates and times of schedules, in ISO 8601 and in the shorter form of iCalendar.

A moment is one of three things, and stays what it is: a wall time (naive), an instant (with an
offset or `Z`; kept in UTC), or a date. What a date means depends on where it stands: the end of
that day for UNTIL, the whole day for EXDATE, the schedule's time of day for RDATE.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

from holdfast.errors import InvalidOption
from holdfast.recurrence.zones import DAY, Overlap, Zone, to_datetime, to_instant, to_wall

Moment = datetime | date
"""A naive datetime (wall time), an aware one in UTC (instant), or a date."""

YEARS: Final = range(2, 9999)
_FORM: Final = re.compile(
    r"(?P<year>[0-9]{4})(?P<dash>-?)(?P<month>[0-9]{2})(?P=dash)(?P<day>[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2})(?P<colon>:?)(?P<minute>[0-9]{2})"
    r"(?:(?P=colon)(?P<second>[0-9]{2})(?:\.[0-9]{1,9})?)?"
    r"(?P<zone>[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)


def read_moment(field: str, value: object) -> Moment:
    """Read a date, a wall time or an instant; fractions of a second are dropped."""
    if isinstance(value, datetime):
        moment = value.replace(microsecond=0)
        return _checked(field, moment if moment.utcoffset() is None else _in_utc(field, moment))
    if isinstance(value, date):
        return _checked(field, value)
    match = _FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise InvalidOption(
            field,
            "expected a time such as 2026-03-29T09:00 or 20260329T090000 (local), with Z or an "
            f"offset for an instant, or a date, got {_shown(value)}",
        )
    return _checked(field, _spelled(field, match))


def _spelled(field: str, match: re.Match[str]) -> Moment:
    if match["second"] == "60":
        raise InvalidOption(
            field, f"expected seconds from 0 to 59, got {match[0]!r}: leap seconds are no run times"
        )
    try:
        day = date(int(match["year"]), int(match["month"]), int(match["day"]))
        if match["hour"] is None:
            return day
        clock = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
        moment = datetime(day.year, day.month, day.day, *clock)  # noqa: DTZ001 - a wall time
        return moment if match["zone"] is None else _in_utc(field, _placed(moment, match["zone"]))
    except ValueError as error:
        if isinstance(error, InvalidOption):
            raise
        raise InvalidOption(
            field, f"expected a day and time that exist, got {match[0]!r} ({error})"
        ) from None


def _placed(moment: datetime, zone: str) -> datetime:
    if zone in "Zz":
        return moment.replace(tzinfo=UTC)
    away = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return moment.replace(tzinfo=timezone(-away if zone[0] == "-" else away))


def _in_utc(field: str, moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidOption(field, f"expected a year from 2 to 9998, got {moment}") from None


def _checked(field: str, moment: Moment) -> Moment:
    if moment.year not in YEARS:
        raise InvalidOption(field, f"expected a year from 2 to 9998, got {_shown(str(moment))}")
    return moment


def read_local(field: str, value: object, zone: Zone) -> tuple[datetime, bool]:
    """Read a start: its wall time in the zone, and whether that is the second of two equal ones.

    A date is its midnight. A wall time stays as it is, also in a gap: the runs after the first one
    need the time that was meant.
    """
    moment = read_moment(field, value)
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day), False  # noqa: DTZ001 - a wall time
    if moment.tzinfo is None:
        return moment.replace(fold=0), bool(moment.fold) and _comes_twice(moment, zone)
    local = moment.astimezone(zone.info)
    return local.replace(tzinfo=None, fold=0), bool(local.fold)


def _comes_twice(local: datetime, zone: Zone) -> bool:
    before, after = zone.offsets(to_wall(local))
    return before > after


def last_instant(moment: Moment, zone: Zone, overlap: Overlap) -> int:
    """The last instant that is not beyond a bound such as UNTIL; the bound itself is inside."""
    if not isinstance(moment, datetime):
        # To the end of that day, however often the clock shows its last hour.
        wall = to_wall(datetime(moment.year, moment.month, moment.day)) + DAY - 1  # noqa: DTZ001
        return max(wall - offset for offset in zone.offsets(wall))
    if moment.tzinfo is not None:
        return to_instant(moment)
    return zone.instants(to_wall(moment), "shift", overlap)[-1]


def write_moment(moment: Moment) -> str:
    """A moment as JSON has it; `read_moment` gives the same one back."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.replace(tzinfo=None).isoformat() + "Z"
    return moment.isoformat()


def write_ical(moment: Moment) -> str:
    """A moment as iCalendar has it."""
    if not isinstance(moment, datetime):
        return f"{moment.year:04}{moment.month:02}{moment.day:02}"
    zone = "" if moment.tzinfo is None else "Z"
    return f"{write_ical(moment.date())}T{moment.hour:02}{moment.minute:02}{moment.second:02}{zone}"


def local_text(instant: int, zone: Zone) -> str:
    """An instant for a message: local time and zone."""
    return f"{to_datetime(instant).astimezone(zone.info):%Y-%m-%dT%H:%M:%S} {zone.name}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
