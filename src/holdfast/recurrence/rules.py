"""One recurrence rule of RFC 5545 (RRULE), as values: read, checked, written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from holdfast.errors import InvalidOption
from holdfast.recurrence.moments import Moment, read_moment, write_ical

MOST_RUNS: Final = 100_000
"""The largest COUNT and `max_runs`: the end of such a rule is found once, when it is made."""

MOST_COUNTED: Final = 10_000
"""The same where the end can only be found by going from run to run."""

DAY_NAMES: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Freq(StrEnum):
    """How often the periods of a rule come."""

    SECONDLY = "SECONDLY"
    MINUTELY = "MINUTELY"
    HOURLY = "HOURLY"
    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    YEARLY = "YEARLY"

    @property
    def is_elapsed(self) -> bool:
        """Whether it steps in elapsed time; the others follow the clock on the wall."""
        return self in (Freq.SECONDLY, Freq.MINUTELY, Freq.HOURLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An RRULE. Lists are sorted and hold no value twice; an empty one was not given.

    `byday` holds (ordinal, weekday) pairs: (0, 4) is every Friday, (-1, 4) the last one.
    """

    freq: Freq
    interval: int = 1
    count: int | None = None
    until: Moment | None = None
    bymonth: tuple[int, ...] = ()
    byweekno: tuple[int, ...] = ()
    byyearday: tuple[int, ...] = ()
    bymonthday: tuple[int, ...] = ()
    byday: tuple[tuple[int, int], ...] = ()
    byhour: tuple[int, ...] = ()
    byminute: tuple[int, ...] = ()
    bysecond: tuple[int, ...] = ()
    bysetpos: tuple[int, ...] = ()
    wkst: int = 0

    @property
    def text(self) -> str:
        """The rule in its one canonical spelling."""
        parts = [f"FREQ={self.freq}"]
        if self.until is not None:
            parts.append(f"UNTIL={write_ical(self.until)}")
        if self.count is not None:
            parts.append(f"COUNT={self.count}")
        if self.interval != 1:
            parts.append(f"INTERVAL={self.interval}")
        for name in _LISTS:
            if values := getattr(self, name.lower()):
                parts.append(f"{name}={','.join(map(str, values))}")
            if name == "BYMONTHDAY" and self.byday:
                days = (f"{n or ''}{DAY_NAMES[day]}" for n, day in self.byday)
                parts.append(f"BYDAY={','.join(days)}")
        if self.wkst:
            parts.append(f"WKST={DAY_NAMES[self.wkst]}")
        return ";".join(parts)

    def explicit(self, dtstart: datetime) -> Rule:
        """The same rule with what it takes from its start spelled out.

        A rule of elapsed time takes its phase from the start, not a time of day: it stays as it is.
        """
        if self.freq.is_elapsed:
            return self
        filled = self if self._has_days else self._with_days_of(dtstart)
        return replace(
            filled,
            byhour=self.byhour or (dtstart.hour,),
            byminute=self.byminute or (dtstart.minute,),
            bysecond=self.bysecond or (dtstart.second,),
        )

    @property
    def _has_days(self) -> bool:
        if self.byweekno and not (self.byday or self.bymonthday or self.byyearday):
            return False
        return bool(self.byday or self.bymonthday or self.byyearday or self.byweekno)

    def _with_days_of(self, dtstart: datetime) -> Rule:
        if self.freq is Freq.WEEKLY or self.byweekno:
            return replace(self, byday=((0, dtstart.weekday()),))
        if self.freq is Freq.MONTHLY:
            return replace(self, bymonthday=(dtstart.day,))
        if self.freq is Freq.YEARLY:
            months = self.bymonth or (dtstart.month,)
            return replace(self, bymonth=months, bymonthday=(dtstart.day,))
        return self


_LISTS: Final = {
    "BYMONTH": (1, 12, False),
    "BYWEEKNO": (1, 53, True),
    "BYYEARDAY": (1, 366, True),
    "BYMONTHDAY": (1, 31, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSECOND": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
"""The lists of numbers: the smallest, the largest, and whether they may count from the end."""

_PARTS: Final = ("FREQ", "UNTIL", "COUNT", "INTERVAL", *_LISTS, "BYDAY", "WKST")
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_SIGNED: Final = re.compile(r"[+-]?[0-9]{1,10}")
_WEEKDAY: Final = re.compile(rf"([+-]?[0-9]{{1,2}})?({'|'.join(DAY_NAMES)})")


def parse_rule(text: str) -> Rule:
    """Read one RRULE; the prefix `RRULE:` is optional, case does not matter."""
    parts = _split(text)
    if "FREQ" not in parts:
        raise _refused(f"expected FREQ=… such as FREQ=DAILY, got {_shown(text)}")
    values: dict[str, object] = {}
    for name, value in parts.items():
        values[name.lower()] = _READERS[name](name, value)
    rule = Rule(**values)  # type: ignore[arg-type]  # the readers give what the fields hold
    _refuse_what_does_not_go_together(rule)
    return rule


def _split(text: str) -> dict[str, str]:
    body = text.strip().upper().removeprefix("RRULE:").removesuffix(";")
    parts: dict[str, str] = {}
    for part in body.split(";"):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals:
            raise _refused(f"expected parts such as FREQ=DAILY, separated by ;, got {_shown(part)}")
        if name not in _PARTS:
            raise _refused(f"expected one of {', '.join(_PARTS)}, got {_shown(name)}")
        if name in parts:
            raise _refused(f"expected {name} once, got it twice")
        if not value:
            raise _refused(f"expected a value after {name}=, got none")
        parts[name] = value
    return parts


def _freq(name: str, value: str) -> Freq:
    if value not in Freq.__members__:
        raise _refused(f"expected {name} to be one of {', '.join(Freq)}, got {_shown(value)}")
    return Freq(value)


def _until(name: str, value: str) -> Moment:
    return read_moment("until", value)


def _count(name: str, value: str) -> int:
    number = int(value) if _NUMBER.fullmatch(value) else 0
    if not 1 <= number <= MOST_RUNS:
        raise _refused(f"expected {name} from 1 to {MOST_RUNS:,}, got {_shown(value)}")
    return number


def _interval(name: str, value: str) -> int:
    number = int(value) if _NUMBER.fullmatch(value) else 0
    if number < 1:
        raise _refused(f"expected {name} to be a whole number from 1, got {_shown(value)}")
    return number


def _list(name: str, value: str) -> tuple[int, ...]:
    least, most, signed = _LISTS[name]
    form = _SIGNED if signed else _NUMBER
    numbers = set()
    for each in value.split(","):
        number = int(each) if form.fullmatch(each.strip()) else None
        if number is None or not least <= (abs(number) if signed else number) <= most:
            both = f" or -{most} to -{least}" if signed else ""
            raise _refused(f"expected {name} from {least} to {most}{both}, got {_shown(each)}")
        numbers.add(number)
    return tuple(sorted(numbers))


def _weekdays(name: str, value: str) -> tuple[tuple[int, int], ...]:
    days = set()
    for each in value.split(","):
        match = _WEEKDAY.fullmatch(each.strip())
        ordinal = int(match[1]) if match and match[1] else 0
        if match is None or abs(ordinal) > 53 or (match[1] and not ordinal):
            raise _refused(
                f"expected {name} to list days such as MO or -1FR (-53 to 53), got {_shown(each)}"
            )
        days.add((ordinal, DAY_NAMES.index(match[2])))
    return tuple(sorted(days))


def _week_start(name: str, value: str) -> int:
    if value not in DAY_NAMES:
        raise _refused(f"expected {name} to be one of {', '.join(DAY_NAMES)}, got {_shown(value)}")
    return DAY_NAMES.index(value)


_READERS: Final[dict[str, Callable[[str, str], object]]] = {
    "FREQ": _freq,
    "UNTIL": _until,
    "COUNT": _count,
    "INTERVAL": _interval,
    "BYDAY": _weekdays,
    "WKST": _week_start,
    **dict.fromkeys(_LISTS, _list),
}


def _refuse_what_does_not_go_together(rule: Rule) -> None:
    freq = rule.freq
    if rule.count is not None and rule.until is not None:
        raise _refused("expected COUNT or UNTIL, got both; a rule has one end")
    if any(n for n, _ in rule.byday):
        if freq not in (Freq.MONTHLY, Freq.YEARLY):
            raise _refused(
                f"expected plain days such as BYDAY=MO in a {freq} rule, got one with a number; "
                "numbers need FREQ=MONTHLY or FREQ=YEARLY"
            )
        if rule.byweekno:
            raise _refused(
                "expected plain days such as BYDAY=MO beside BYWEEKNO, got numbered ones"
            )
    if rule.byweekno and freq is not Freq.YEARLY:
        raise _refused(f"expected BYWEEKNO only with FREQ=YEARLY, got FREQ={freq}")
    if rule.byyearday and freq in (Freq.DAILY, Freq.WEEKLY, Freq.MONTHLY):
        raise _refused(f"expected BYYEARDAY with FREQ=YEARLY, got FREQ={freq}")
    if rule.bymonthday and freq is Freq.WEEKLY:
        raise _refused("expected BYMONTHDAY with FREQ=MONTHLY, YEARLY or DAILY, got FREQ=WEEKLY")
    if rule.bysetpos and not _has_other_lists(rule):
        raise _refused("expected another BY part beside BYSETPOS, got BYSETPOS alone")


def _has_other_lists(rule: Rule) -> bool:
    names = [name.lower() for name in _LISTS if name != "BYSETPOS"]
    return bool(rule.byday) or any(getattr(rule, name) for name in names)


def _refused(message: str) -> InvalidOption:
    return InvalidOption("rrule", message)


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
