"""Numbers that are times by their place alone, as in notes: "run daily 7", "tomorrow 1730"."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.stream import Stream

_DAYS: Final = ("relday", "weekday", "daygroup", "freq", "plural", "part", "daypart")
_SPANS: Final = ("relday", "weekday", "daygroup", "plural", "daypart")
_MINUTES: Final = (5, 10, 15, 20, 25)
"""Numbers that may be minutes in "ten to five"."""


def is_terse(s: Stream, at: int) -> bool:
    """Whether a number is a time: "wake me 6", "call mum Sundays 4", "mon 9, wed 14"."""
    hour = s.number(at)
    if hour is None or s.items[at].shape != "number" or s.pack.name != "en":
        return False
    if len(s.text(at)) == 4:
        return _is_military(s, at, hour)
    if not 1 <= hour <= 24 or s.items[at].glued:
        return False
    asked = s.word(at - 1, "lead") in ("keep", "remind")
    if s.text(at + 1) == "h" and s.items[at + 1].glued:
        return hour > 12 and (at == 0 or asked or s.has(at - 1, *_DAYS))  # "17h call mum"
    if s.has(at - 1, "weekday") and _is_one_of_many(s, at):
        return True
    if s.has(at - 1, "and", "comma") and s.has(at + 1, "on") and _has_time_before(s, at - 1):
        return s.has(at + 2, "plural", "daygroup", "weekday")  # "at 9 on weekdays and 11 on …"
    if not _ends(s, at + 1):
        return False
    lasting = s.has(at - 2, "every") or s.has(at - 1, "plural", "daygroup", "freq")
    if s.has(at - 1, "weekday") and not lasting:
        return False  # "Friday 13" may be a date
    return asked or s.has(at - 1, *_DAYS)


def _has_time_before(s: Stream, at: int) -> bool:
    return any(s.has(n, "clock", "ampm", "at") for n in range(at))


def _ends(s: Stream, at: int) -> bool:
    return all(s.has(n, "tail") or s.items[n].shape == "mark" for n in range(at, len(s.items)))


def _is_one_of_many(s: Stream, at: int) -> bool:
    """ "mon 9, wed 14, fri 16": weekdays with an hour each."""
    behind = s.skip(at + 1, "and", "comma")
    if behind > at + 1 and s.has(behind, "weekday") and s.has(behind + 1, "num", "clock"):
        return True
    before = at - 2
    while before > 0 and s.has(before, "and", "comma"):
        before -= 1
    return before < at - 2 and s.has(before, "num") and s.has(before - 1, "weekday")


def _is_military(s: Stream, at: int, hour: int) -> bool:
    """ "1730 tomorrow", "daily 0700", but not "every day 2000 steps"."""
    if hour >= 2400 or hour % 100 > 59:
        return False
    if s.has(at + 1, "relday", "weekday", "daypart", "daygroup"):
        return at == 0 or s.is_plain(at - 1)
    plain = s.is_plain(at + 1) and not (s.text(at)[0] == "0" or hour % 100 in (15, 30, 45))
    return s.has(at - 1, *_DAYS) and not plain and not s.has(at + 1, "unit", "counter", "times")


def is_dashed(s: Stream, at: int) -> bool:
    """ "6-7pm", "hourly 9-5", "tomorrow 9-10": a range of bare hours."""
    if not (s.has(at, "num") and s.has(at + 1, "range") and s.has(at + 2, "num")):
        return False
    if s.text(at + 1) == "-" and s.has(at + 3, "ampm"):
        return True
    first, last = s.number(at) or 0, s.number(at + 2) or 0
    if not (1 <= first <= 24 and 1 <= last <= 24) or s.has(at + 3, "unit", "times", "month"):
        return False
    if s.text(at + 1) != "-" and first in _MINUTES:
        return False
    if s.word(at - 1, "unit") in ("minute", "hour") or s.has(at - 1, *_SPANS):
        return True
    if s.has(at - 1, "short_unit") and s.has(at - 2, "num"):
        return True
    return s.has(at - 1, "freq") and not s.is_plain(at + 3)
