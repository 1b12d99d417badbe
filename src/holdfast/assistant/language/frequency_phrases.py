"""How often something runs: "twice a day", "biweekly", "on alternate Mondays", "mornings"."""

from __future__ import annotations

from holdfast.assistant.language.amounts import amount
from holdfast.assistant.language.clock_phrases import read_times
from holdfast.assistant.language.day_phrases import ordinal_at
from holdfast.assistant.language.lexicon import Value
from holdfast.assistant.language.recurrence_phrases import (
    every_unit,
    read_every,
    spaced_unit,
    stepped,
)
from holdfast.assistant.language.stream import Reading, Stream
from holdfast.assistant.slots import Amount

_Found = list[tuple[str, Value]]


def read_frequency(s: Stream, at: int) -> Reading | None:
    """ "daily", "biweekly", "twice a day", "6 times", "once every two weeks"."""
    value = s.get(at, "freq")
    if isinstance(value, tuple):
        found: _Found = [stepped(Amount(number=value[0], unit=value[1]))]
        if len(value) > 2:
            found.append(("part", value[2]))
        return found, at + 1
    if s.has(at, "unit") and s.has(at + 1, "per") and s.has(at + 2, "ntimes"):
        made = amount(1, s.word(at, "unit") or "")  # "सप्ताह में एक बार"
        often = s.number(at + 2, "ntimes") or 1
        if made is not None:
            extra: _Found = [("ntimes", often)] if often > 1 else []
            return [stepped(made), *extra], at + 3
    days = _days_a_week(s, at)
    if days is not None:
        return days
    if s.number(at) == 1 and s.has(at + 1, "unit") and s.has(at + 3, "times_per"):
        return every_unit(s, at + 1)  # "一天三次"
    if (
        s.has(at, "unit")
        and s.has(at + 1, "per")
        and s.has(at + 2, "few")
        and s.has(at + 3, "times")
    ):
        return [("trouble", "vague_recurrence")], at + 4  # "दिन में कई बार"
    number, place = s.number(at, "ntimes"), at + 1
    if number is None and s.has(at, "num") and s.has(at + 1, "times"):
        number, place = s.number(at), at + 2
    elif number is None and s.has(at, "few", "couple") and s.has(at + 1, "times"):
        behind = s.skip(at + 2, "one", "every", "per", "in", "during", "det")
        vague: _Found = [("trouble", "vague_recurrence")]
        return (vague, behind + 1) if s.has(behind, "unit", "part") else None
    if number is None:
        return None
    step = s.get(place, "freq")
    if isinstance(step, tuple) and len(step) == 2 and step[0] == 1:
        counted: _Found = [("ntimes", number)] if number > 1 else []
        return [stepped(Amount(number=1, unit=step[1])), *counted], place + 1  # "twice daily"
    return _times_per(s, at, place, number)


def _days_a_week(s: Stream, at: int) -> Reading | None:
    """ "7 days a week" is every day, "5 days a week" leaves open which ones."""
    if s.text(at) == "24/7":
        return [("trouble", "vague_recurrence")], at + 1
    number = s.number(at)
    place = s.skip(at + 2, "one", "per", "every")
    if number is None or s.word(at + 1, "unit") != "day" or place == at + 2:
        return None
    if s.word(place, "unit") != "week":
        return None
    if number == 7:
        return [("every", Amount(number=1, unit="day"))], place + 1
    return [("trouble", "vague_recurrence")], place + 1


def read_alternate(s: Stream, at: int) -> Reading | None:
    """ "un vendredi sur deux", "un lunes sí y otro no", "on alternate Mondays": one of so many."""
    place = s.skip(at, "on")
    if s.has(place, "alternate") and not s.has(place - 1, "every"):
        plural = s.has(place + 1, "plural", "weekday", "unit") and not s.has(place - 1, "det")
        return spaced_unit(s, place + 1, 2) if plural else None
    number = s.number(at + 2, "one_of")
    if number is None or not s.has(at, "one"):
        return None
    found = spaced_unit(s, at + 1, number)
    return None if found is None or found[1] != at + 2 else (found[0], at + 3)


def _times_per(s: Stream, at: int, place: int, number: int) -> Reading | None:
    if number == 1 and s.has(place, "every"):
        found = read_every(s, place)
        if found is not None:
            return found
    behind = s.skip(place, "one", "every", "per", "det")
    unit = "quarter" if s.text(place) == "a quarter" else s.word(behind, "unit")
    if unit is not None and (behind > place or s.text(place) == "a quarter"):
        made = amount(1, unit)
        if made is None:
            return None
        if number == 1:
            return [stepped(made)], behind + 1
        return [stepped(made), ("ntimes", number)], behind + 1
    daygroup = s.get(behind, "daygroup")
    if behind > place and isinstance(daygroup, tuple):
        found_: _Found = [("every", Amount(number=1, unit="week")), ("weekdays", daygroup)]
        return ([*found_, ("ntimes", number)] if number > 1 else found_), behind + 1
    if number == 1 or (s.has(at, "ntimes") and not _counts(s, at, place)):
        return None
    return [("count", number)], place


def _counts(s: Stream, at: int, place: int) -> bool:
    """ "twice" is a number of runs only where it stands between commas or at the end."""
    return s.has(at - 1, "comma", "for") or place >= len(s.items) or s.has(place, "comma")


def read_parts(s: Stream, at: int) -> Reading | None:
    """ "mornings at 7", "in the evenings": a part of every day."""
    place = s.skip(at, "on", "in", "part_prep", "det")
    part = s.word(place, "part")
    if part is None or not s.has(place, "parts") or s.has(at - 1, "weekday", "daygroup", "every"):
        return None
    alone = at == 0 or s.has(at - 1, "comma", "lead") or place > at
    if not alone or s.has(at, "det") or s.has(at - 1, "of"):
        return None
    found: _Found = [("every", Amount(number=1, unit="day")), ("part", part)]
    also = s.skip(place + 1, "and", "comma", "in", "part_prep", "det")
    if also > place + 1 and s.has(also, "parts"):  # "mornings and evenings"
        return [found[0], *(read_times(s, place) or ([], 0))[0]], also + 1
    hours = read_times(s, place + 1) if s.has(place + 1, "at") else None
    return (found + hours[0], hours[1]) if hours is not None else (found, place + 1)


def read_position(s: Stream, at: int) -> Reading | None:
    """ "only the first of these in each month", as schedules are told in words."""
    order = ordinal_at(s, s.skip(at + 1, "det")) if s.has(at, "only") else None
    if order is None or not s.has(order[1], "of_these"):
        return None
    place = s.skip(order[1] + 1, "in_period", "in", "every")
    return ([("position", order[0])], place + 1) if s.word(place, "unit") == "month" else None
