"""Cron lines: five fields, read the way Vixie cron and its Debian descendant read them.

Beside numbers, names, ranges, steps and lists: `L` (the last day of the month), `5L` in the weekday
field (its last Friday), `5#3` (its third Friday), `15W` (the workday nearest to the 15th), and
names such as `@daily`.

*Days*: if both day fields are restricted, a day needs to match one of them; a field that starts
with `*` is unrestricted, and then both must match. *Clock changes*: a line whose hour or minute
starts with `*` follows elapsed time, so it runs through both passes of a doubled hour; any other
line names times of day, and follows `gap` and `overlap`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from holdfast.errors import InvalidOption
from holdfast.recurrence.year_days import month_length

NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = [
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN"),
    *("JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
]
_DAYS: Final = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_RANGE: Final = re.compile(r"(?:\*|(\w{1,3})(?:-(\w{1,3}))?)(?:/([0-9]{1,4}))?", re.ASCII)
_LAST_WEEKDAY: Final = re.compile(r"(\w{1,3})L", re.ASCII)
_NTH_WEEKDAY: Final = re.compile(r"(\w{1,3})#([0-9])", re.ASCII)
_NEAREST: Final = re.compile(r"([0-9]{1,2}|L)W", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A cron line. Weekdays count from Monday = 0, as Python does; lists are sorted.

    `special_weekdays` holds (ordinal, weekday): (-1, 4) is `5L`, (3, 4) is `5#3`. `nearest` holds
    the days of `W`, 0 for `LW`. `either_day` says that one matching day field is enough.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    month_days: frozenset[int]
    last_month_day: bool
    nearest: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    special_weekdays: frozenset[tuple[int, int]]
    either_day: bool
    is_elapsed: bool

    def matches_day(self, day: date) -> bool:
        """Whether it runs on a day."""
        if day.month not in self.months:
            return False
        if self.either_day:
            return self._matches_number(day) or self._matches_weekday(day)
        return self._matches_number(day) and self._matches_weekday(day)

    def _matches_number(self, day: date) -> bool:
        if day.day in self.month_days:
            return True
        length = month_length(day)
        if self.last_month_day and day.day == length:
            return True
        return any(day.day == _nearest_workday(day, each or length) for each in self.nearest)

    def _matches_weekday(self, day: date) -> bool:
        weekday = day.weekday()
        if weekday in self.weekdays:
            return True
        up, is_last = (day.day - 1) // 7 + 1, day.day + 7 > month_length(day)
        return (up, weekday) in self.special_weekdays or (
            is_last and (-1, weekday) in self.special_weekdays
        )


def _nearest_workday(day: date, wanted: int) -> int:
    """The workday nearest to a day of that month, without leaving the month; 0 if it has no such
    day.
    """
    length = month_length(day)
    if wanted > length:
        return 0
    match day.replace(day=wanted).weekday():
        case 5:
            return wanted - 1 if wanted > 1 else wanted + 2
        case 6:
            return wanted + 1 if wanted < length else wanted - 2
        case _:
            return wanted


def parse_cron(text: object) -> Cron:
    """Read a cron line of five fields, or a name such as `@daily`."""
    if not isinstance(text, str):
        raise _refused(f"expected a line such as '0 9 * * 1-5', got {text!r}")
    line = " ".join(text.split())
    if line.startswith("@"):
        line = _named(line)
    fields = line.upper().split(" ")
    if len(fields) != 5:
        raise _refused(
            "expected five fields (minute, hour, day of month, month, day of week), "
            f"got {len(fields) if line else 0} in {_shown(text)}"
            + (": fields for seconds and years are not supported" if len(fields) in (6, 7) else "")
        )
    minute, hour, number, month, weekday = fields
    month_days, last, nearest = _month_days(number)
    weekdays, special = _weekdays(weekday)
    return Cron(
        text=line.upper(),
        minutes=tuple(sorted(_field("minute", minute, 0, 59))),
        hours=tuple(sorted(_field("hour", hour, 0, 23))),
        month_days=month_days,
        last_month_day=last,
        nearest=nearest,
        months=frozenset(_field("month", month, 1, 12, _MONTHS)),
        weekdays=weekdays,
        special_weekdays=special,
        either_day=not number.startswith(("*", "?")) and not weekday.startswith(("*", "?")),
        is_elapsed=minute.startswith("*") or hour.startswith("*"),
    )


def _named(line: str) -> str:
    if line.lower() == "@reboot":
        raise _refused(
            "expected a time, got '@reboot': a schedule belongs to no machine that could start; "
            "submit the task when your process starts instead"
        )
    if line.lower() not in NICKNAMES:
        raise _refused(f"expected one of {', '.join(NICKNAMES)}, got {_shown(line)}")
    return NICKNAMES[line.lower()]


def _month_days(field: str) -> tuple[frozenset[int], bool, frozenset[int]]:
    plain, nearest, last = [], set(), False
    for part in field.split(","):
        if part == "L":
            last = True
        elif match := _NEAREST.fullmatch(part):
            day = 0 if match[1] == "L" else int(match[1])
            if match[1] != "L" and not 1 <= day <= 31:
                raise _refused(f"expected W after a day from 1 to 31, got {_shown(part)}")
            nearest.add(day)
        else:
            plain.append(_every(part))
    days = _field("day of month", ",".join(plain), 1, 31) if plain else set()
    return frozenset(days), last, frozenset(nearest)


def _weekdays(field: str) -> tuple[frozenset[int], frozenset[tuple[int, int]]]:
    plain, special = [], set()
    for part in field.split(","):
        if part == "L":
            raise _refused("expected a day before L in the day of week, such as 5L, got 'L'")
        if match := _LAST_WEEKDAY.fullmatch(part):
            special.add((-1, _weekday(match[1])))
        elif match := _NTH_WEEKDAY.fullmatch(part):
            if not 1 <= int(match[2]) <= 5:
                raise _refused(f"expected 1 to 5 after #, got {_shown(part)}")
            special.add((int(match[2]), _weekday(match[1])))
        else:
            plain.append(_every(part))
    days = _field("day of week", ",".join(plain), 0, 7, _DAYS) if plain else set()
    return frozenset((day - 1) % 7 for day in days), frozenset(special)


def _every(part: str) -> str:
    return "*" if part == "?" else part


def _weekday(text: str) -> int:
    return (_number("day of week", text, 0, 7, _DAYS) - 1) % 7


def _field(
    name: str, field: str, least: int, most: int, names: list[str] | None = None
) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise _refused(
                f"expected the {name} as a number from {least} to {most}, a range, a step such as "
                f"*/5 or a list, got {_shown(part)}"
            )
        found.update(_range(name, match, least, most, names))
    return found


def _range(
    name: str, match: re.Match[str], least: int, most: int, names: list[str] | None
) -> range:
    step = int(match[3] or 1)
    if not 1 <= step <= most:
        raise _refused(f"expected the step of the {name} from 1 to {most}, got {_shown(match[0])}")
    if match[1] is None:
        return range(least, (most if names is not _DAYS else 6) + 1, step)
    first = _number(name, match[1], least, most, names)
    if match[2] is not None:
        last = _number(name, match[2], least, most, names)
        if names is _DAYS and last == 0 and first > 0:
            last = 7  # FRI-SUN
        if last < first:
            raise _refused(f"expected the {name} range to go up, got {_shown(match[0])}")
    else:
        last = most if match[3] else first
    return range(first, last + 1, step)


def _number(name: str, text: str, least: int, most: int, names: list[str] | None) -> int:
    if names is not None and text in names:
        return names.index(text) + least
    if not text.isdecimal() or not least <= int(text) <= most:
        known = f" or {names[0]} to {names[-1]}" if names else ""
        raise _refused(f"expected the {name} from {least} to {most}{known}, got {_shown(text)}")
    return int(text)


def _refused(message: str) -> InvalidOption:
    return InvalidOption("cron", message)


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
