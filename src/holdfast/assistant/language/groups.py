"""Days and times that belong together, from the phrases of a sentence in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, cast

from holdfast.assistant.language.stream import Phrase, Stream
from holdfast.assistant.slots import Amount, Clock, Day, Nth, Part, Trouble, Unit, Window

_DAY_KINDS: Final = frozenset({"day", "weekdays", "nths", "monthdays", "yearly"})
_TIME_KINDS: Final = frozenset({"times", "window"})
_LISTS: Final = frozenset({"nths", "monthdays", "yearly", "times", "minutes"})
_SINGLES: Final = frozenset({"months", "part", "window"})
_BUSINESS: Final = Window(start=Clock(hour=9, written=True), end=Clock(hour=17, written=True))


class Unclear(Exception):
    """Phrases that do not fit together."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble)
        self.trouble: Trouble = trouble


@dataclass
class Group:
    """Days and times that belong together."""

    every: Amount | None = None
    sub: Amount | None = None
    days: list[Day] = field(default_factory=list)
    weekdays: list[tuple[int, ...]] = field(default_factory=list)
    nths: list[Nth] = field(default_factory=list)
    monthdays: list[int] = field(default_factory=list)
    months: tuple[int, ...] = ()
    yearly: list[Day] = field(default_factory=list)
    times: list[Clock] = field(default_factory=list)
    part: Part | None = None
    window: Window | None = None
    minutes: list[int] = field(default_factory=list)
    united: bool = False
    """Whether its days come on top of others: "every Monday and the 1st of each month"."""

    @property
    def has_days(self) -> bool:
        return bool(self.days or self.weekdays or self.nths or self.monthdays or self.yearly)

    @property
    def has_times(self) -> bool:
        return bool(self.times or self.window)

    @property
    def recurs(self) -> bool:
        return bool(self.every or self.sub or self.weekdays or self.yearly)


def groups_of(s: Stream, phrases: Sequence[Phrase]) -> list[Group]:
    groups = [Group()]
    previous: Phrase | None = None
    for place, phrase in enumerate(phrases):
        here = groups[-1]
        rest = phrases[place + 1 :]
        united = _is_united(s, phrase, here, rest)
        if united or _opens_group(phrase, here, rest):
            here = Group(united=united)
            groups.append(here)
        _put(s, here, phrase, previous)
        if phrase.kind in _DAY_KINDS:
            previous = phrase
    _share_times(groups)
    return groups


def _is_united(s: Stream, phrase: Phrase, here: Group, rest: Sequence[Phrase]) -> bool:
    """Whether days of another kind are joined by "and": weekdays and days of the month."""
    if not (s.has(phrase.start - 1, "and") or s.has(phrase.start, "and")) or here.sub is not None:
        return False
    named = rest[0] if phrase.kind == "every" and rest else phrase
    kind = _family(named)
    dated = [each for each in here.days if each.kind == "monthday"]
    held = {"weekdays": here.weekdays, "nths": here.nths, "monthdays": here.monthdays or dated}
    return kind is not None and any(days and each != kind for each, days in held.items())


def _family(phrase: Phrase) -> str | None:
    if phrase.kind in ("weekdays", "nths", "monthdays"):
        return phrase.kind
    day = phrase.value
    if phrase.kind == "day" and isinstance(day, Day) and day.shift is None:
        return {"weekday": "weekdays", "monthday": "monthdays"}.get(day.kind)
    return None


def _share_times(groups: list[Group]) -> None:
    """Times said once count for days that are joined by "and"."""
    for one, other in pairwise(groups):
        if not other.united:
            continue
        giver, taker = (one, other) if one.has_times or one.part else (other, one)
        if not (taker.has_times or taker.part):
            taker.times, taker.window, taker.part = list(giver.times), giver.window, giver.part
        for each in (one, other):
            if each.every is None:
                unit: Unit = "month" if each.nths or each.monthdays or each.days else "week"
                each.every = Amount(number=1, unit=unit)


def _opens_group(phrase: Phrase, here: Group, rest: Sequence[Phrase]) -> bool:
    """Whether these days or times have partners of their own."""
    if not (here.has_days and (here.has_times or here.part)):
        return False
    if phrase.kind in _DAY_KINDS or (phrase.kind == "every" and _first_kind(rest, _DAY_KINDS)):
        return any(p.kind in _TIME_KINDS or p.kind == "part" for p in rest)
    if phrase.kind in _TIME_KINDS:
        return any(p.kind in _DAY_KINDS for p in rest)
    return False


def _first_kind(rest: Sequence[Phrase], kinds: frozenset[str]) -> bool:
    return bool(rest) and rest[0].kind in kinds


def _put(s: Stream, group: Group, phrase: Phrase, previous: Phrase | None) -> None:
    value: Any = phrase.value
    kind = phrase.kind
    if kind == "times":
        _put_times(s, group, phrase)
    elif kind in _LISTS:
        getattr(group, kind).extend(value)
    elif kind in _SINGLES:
        setattr(group, kind, value)
    elif kind == "every":
        group.every = _one_unit(group.every, value)
    elif kind == "sub":
        if group.sub is not None and group.sub != value:
            raise Unclear("contradiction")
        group.sub = value
    elif kind == "day":
        _put_day(s, group, value, phrase, previous)
    elif kind == "weekdays":
        group.weekdays.append(value)
    elif kind == "business":
        group.window = _BUSINESS
        if not group.weekdays:
            group.weekdays.append((0, 1, 2, 3, 4))


def _put_times(s: Stream, group: Group, phrase: Phrase) -> None:
    clocks = cast("tuple[Clock, ...]", phrase.value)
    if _names_hours(s, group, phrase):
        group.times = [replace(each, part=group.times[0].part, written=False) for each in clocks]
    elif not _names_part(s, group, phrase):
        group.times.extend(clocks)
    elif _is_open(group.times[-1]):
        group.times = _with_late_part(group.times, clocks[0].part)
    elif not _agrees(group.times[-1], clocks[0].part):
        raise Unclear("contradiction")


def _names_hours(s: Stream, group: Group, phrase: Phrase) -> bool:
    """ "every evening next week at 8": the hours of a part of the day that was said before."""
    if len(group.times) != 1 or group.times[0].hour is not None or _is_joined(s, phrase.start):
        return False
    clocks = cast("tuple[Clock, ...]", phrase.value)
    return all(each.hour is not None and not (each.half or each.part) for each in clocks)


def _is_joined(s: Stream, at: int) -> bool:
    return s.has(at, "and") or s.has(at - 1, "and")


def _names_part(s: Stream, group: Group, phrase: Phrase) -> bool:
    """ "at nine tomorrow night", "at 7am every morning": the part of the day of hours that were
    said before.
    """
    clocks = cast("tuple[Clock, ...]", phrase.value)
    start = phrase.start - 1 if s.has(phrase.start - 1, "every") else phrase.start
    if len(clocks) != 1 or clocks[0].hour is not None or s.has(start - 1, "and", "comma"):
        return False
    return bool(group.times) and group.times[-1].hour is not None


def _agrees(clock: Clock, part: Part | None) -> bool:
    """Whether a part of the day only says again what an hour said: "10pm each night"."""
    if clock.half is None or part == "night":
        return clock.part in (None, part)
    return (part == "morning") == (clock.half == "am")


def _is_open(clock: Clock) -> bool:
    return clock.hour is not None and not (clock.half or clock.part)


def _with_late_part(times: list[Clock], part: Part | None) -> list[Clock]:
    """The last hours get a part of the day: "at 8 every morning and at 8 every evening"."""
    open_from = len(times)
    while open_from and _is_open(times[open_from - 1]):
        open_from -= 1
    late = [replace(each, part=part, written=False) for each in times[open_from:]]
    return times[:open_from] + late


def _one_unit(held: Amount | None, new: Amount) -> Amount:
    """ "every week on every Monday" is one unit; "every day every month" is none."""
    if held is None or held == new:
        return new
    if "day" in (held.unit, new.unit) and 1 in (held.number, new.number):
        return new if held.unit == "day" else held
    if held.unit == new.unit and 1 in (held.number, new.number):
        return held if held.number > 1 else new
    if {held.unit, new.unit} == {"month", "year"} or "quarter" in (held.unit, new.unit):
        return held if held.unit != "year" else new
    raise Unclear("contradiction")


def _put_day(s: Stream, group: Group, day: Day, phrase: Phrase, previous: Phrase | None) -> None:
    if day.kind == "unclear" and day.name == "impossible":
        raise Unclear("impossible_date")
    if day.kind == "edge" and day.unit == "week" and day.number == -1:
        raise Unclear("no_day")
    if day.kind == "unclear" and day.name == "slashed":
        raise Unclear("unknown_date")
    if group.days and previous is not None:
        between = range(previous.end, phrase.start)
        if not any(s.has(n, "and", "comma", "or") for n in between):
            group.days[-1] = _both(group.days[-1], day)
            return
    group.days.append(day)


def _both(one: Day, other: Day) -> Day:
    """Two names of one day: the weaker one becomes a check."""
    for first, second in ((one, other), (other, one)):
        if second.kind == "weekday" and second.shift is None:
            return replace(first, check=second.weekday)
        if first.kind == "weekday" and second.kind == "unclear" and second.unit == "week":
            return replace(first, shift=second.shift)
        if first.kind == "monthday" and second.kind == "unclear" and second.unit == "month":
            return replace(first, shift=second.shift)
        if first.kind == "date" and second.kind == "unclear" and second.unit == "year":
            return replace(first, shift=second.shift)
    raise Unclear("contradiction")
