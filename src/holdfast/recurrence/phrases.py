"""Small pieces of English for rules: lists, ordinals, names of days and months, times of day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from holdfast.recurrence.moments import Moment

WEEKDAYS: Final = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)
MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_SPELLED: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}
_MOST_CLOCKS: Final = 8


def joined(items: Iterable[str], word: str = "and") -> str:
    """`a, b and c`."""
    listed = list(items)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} {word} {listed[-1]}"


def numbers(values: Sequence[int], names: Sequence[str] | None = None, word: str = "and") -> str:
    """A list in which three or more neighbours become a range: `0, 9 to 12 and 20`."""
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    items: list[str] = []
    for run in runs:
        shown = [str(value) if names is None else names[value] for value in run]
        items += [f"{shown[0]} to {shown[-1]}"] if len(run) > 2 else shown
    return joined(items, word)


def nth(number: int) -> str:
    """`1st`, `22nd`, `13th`; from the end `last`, `2nd to last`."""
    if number < 0:
        return "last" if number == -1 else f"{nth(-number)} to last"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 <= number % 100 <= 20 else ending}"


def spelled_nth(number: int) -> str:
    """The same with the small ones spelled: `first`, `last`, `20th`."""
    if number < -1:
        return f"{spelled_nth(-number)} to last"
    return _SPELLED.get(number, nth(number))


def month_days(values: Sequence[int]) -> str:
    """`the 1st and 15th`, `the last day`."""
    up, down = [v for v in values if v > 0], sorted((v for v in values if v < 0), reverse=True)
    names = ["", *(nth(n) for n in range(1, 32))]
    items = [f"the {numbers(up, names)}"] if up else []
    return joined([*items, *(f"the {nth(v)} day" for v in down)])


def weekdays(days: Iterable[int], word: str = "and") -> str:
    """`Monday to Friday`, `Tuesday and Thursday`."""
    return numbers(sorted(days), WEEKDAYS, word)


def clock_times(hours: Sequence[int], minutes: Sequence[int], seconds: Sequence[int]) -> str:
    """`at 09:00 and 17:00`, or the fields one by one if that were a long list."""
    if len(hours) * len(minutes) * len(seconds) <= _MOST_CLOCKS:
        ending = any(seconds)
        return "at " + joined(
            f"{h:02}:{m:02}" + (f":{s:02}" if ending else "")
            for h in hours
            for m in minutes
            for s in seconds
        )
    each_hour = "every hour" if len(hours) == 24 else f"{_plural('hour', hours)} {numbers(hours)}"
    text = f"{_plural('minute', minutes)} {numbers(minutes)} of {each_hour}"
    if any(seconds) or len(seconds) > 1:
        text = f"{_plural('second', seconds)} {numbers(seconds)} of {text}"
    return f"at {text}"


def _plural(word: str, values: Sequence[int]) -> str:
    return word if len(values) == 1 else f"{word}s"


def listed(word: str, values: Sequence[int]) -> str:
    """`minute 5`, `minutes 0 and 30`."""
    return f"{_plural(word, values)} {numbers(values)}"


def moment_words(moment: Moment) -> str:
    """`2 September 1997 09:00`, with `UTC` for an instant."""
    day = f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"
    if not isinstance(moment, datetime):
        return day
    clock = f"{moment.hour:02}:{moment.minute:02}" + (
        f":{moment.second:02}" if moment.second else ""
    )
    return f"{day} {clock}" + ("" if moment.tzinfo is None else " UTC")
