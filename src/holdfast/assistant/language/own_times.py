"""Weekdays with a time of their own: "every weekday at 9, except Fridays at 8".

Such days leave the rest of the week to the time that was said first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from holdfast.assistant.language.stream import Phrase, Stream
from holdfast.assistant.slots import Clock, Day


@dataclass(frozen=True)
class OwnTimes:
    """Weekdays, and the times at which a task runs on them."""

    weekdays: tuple[int, ...]
    times: tuple[Clock, ...]
    also: bool
    """Whether these times come on top of the others: "and Fridays also at 5"."""
    unclear: bool = False
    """Whether it may be either: "every day at 7 and Sundays at 9"."""


def own_times(s: Stream, phrases: Sequence[Phrase]) -> tuple[list[Phrase], list[OwnTimes]]:
    """The phrases without days that have times of their own, and those days."""
    rest = list(phrases)
    found: list[OwnTimes] = []
    place = 2
    while place + 1 < len(rest):
        pair = _pair(s, rest, place)
        if pair is None:
            place += 1
        else:
            found.append(pair)
            del rest[place : place + 2]
            if rest[place - 1].kind == "every" and rest[place - 1].start > rest[0].start:
                del rest[place - 1]
                place -= 1
    return rest, found


def _pair(s: Stream, phrases: Sequence[Phrase], place: int) -> OwnTimes | None:
    """The days and times at a place and behind it, in either order."""
    before, one, other = phrases[:place], phrases[place], phrases[place + 1]
    if not any(p.kind == "times" for p in before):
        return None
    days, times = (one, other) if other.kind == "times" else (other, one)
    weekdays = _weekdays_of(days)
    if weekdays is None or times.kind != "times":
        return None
    contrasts = days.kind.startswith("except") or _contrasts(s, one.start)
    if days is other and not contrasts:
        return None
    if not _covered(before, weekdays):
        return None
    clocks = cast("tuple[Clock, ...]", times.value)
    also = not contrasts and any(s.has(n, "add_channel") for n in range(one.start, other.end))
    unclear = not contrasts and not also and s.has(one.start - 1, "and")
    return OwnTimes(weekdays, clocks, also, unclear)


def _contrasts(s: Stream, at: int) -> bool:
    return s.has(at - 1, "except") or s.has(at, "except") or s.has(at - 1, "comma")


def _weekdays_of(phrase: Phrase) -> tuple[int, ...] | None:
    if phrase.kind in ("weekdays", "except_weekdays"):
        return cast("tuple[int, ...]", phrase.value)
    day = phrase.value
    if phrase.kind in ("day", "except_day") and isinstance(day, Day) and day.kind == "weekday":
        return None if day.shift is not None or day.before else (cast("int", day.weekday),)
    return None


def _covered(before: Sequence[Phrase], weekdays: tuple[int, ...]) -> bool:
    """Whether the days said before hold these: those of a group, or every day."""
    sets = [cast("tuple[int, ...]", p.value) for p in before if p.kind == "weekdays"]
    if sets:
        return any(set(weekdays) < set(each) for each in sets)
    daily = any(p.kind == "every" and getattr(p.value, "unit", "") == "day" for p in before)
    return daily and not any(p.kind in ("nths", "monthdays", "yearly", "day") for p in before)
