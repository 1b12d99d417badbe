"""Amounts of time: "two hours and a half", "90 minutes", "anderthalb Stunden", "一个半小时"."""

from __future__ import annotations

from typing import Final, cast

from holdfast.assistant.language.stream import Stream
from holdfast.assistant.slots import Amount, Unit

_SMALLER: Final[dict[str, tuple[int, Unit]]] = {
    "minute": (60, "second"),
    "hour": (60, "minute"),
    "day": (24, "hour"),
    "week": (7, "day"),
    "year": (12, "month"),
}
_ORDER: Final = ("second", "minute", "hour", "day", "workday", "week", "month", "quarter", "year")


def amount(number: float, unit: str) -> Amount | None:
    """So many of a unit; parts of one become a smaller unit."""
    if unit == "fortnight":
        number, unit = number * 2, "week"
    if unit == "decade":
        number, unit = number * 10, "year"
    if number == int(number):
        return Amount(number=int(number), unit=cast("Unit", unit))
    if unit not in _SMALLER:
        return None
    size, smaller = _SMALLER[unit]
    return amount(number * size, smaller)


def read_amounts(s: Stream, at: int) -> tuple[tuple[Amount, ...], int] | None:
    """One amount, or a chain of ever smaller ones: "2 hours and 15 minutes"."""
    first = read_amount(s, at)
    if first is None:
        return None
    found, end = [first[0]], first[1]
    while len(found) < 4:
        following = read_amount(s, s.skip(end, "and", "comma"))
        if following is None or _rank(following[0]) >= _rank(found[-1]):
            break
        found.append(following[0])
        end = following[1]
    return tuple(found), end


def _rank(each: Amount) -> int:
    return _ORDER.index(each.unit) if each.unit in _ORDER else len(_ORDER)


def unit_at(s: Stream, at: int) -> str | None:
    """The unit at a place; short ones ("h", "min") only directly behind a number."""
    found = s.word(at, "unit")
    if found is not None:
        return found
    return s.word(at, "short_unit") if s.has(at - 1, "num", "decimal") else None


def read_amount(s: Stream, at: int) -> tuple[Amount, int] | None:
    """One amount, with halves and quarters."""
    whole = s.get(s.skip(at, "one"), "amount_word")
    if isinstance(whole, tuple):
        return _made(whole[0], whole[1], s.skip(at, "one") + 1)
    if s.has(at, "one") and s.has(at + 1, "quarter_unit"):
        at += 1
    if s.has(at, "half", "quarter_unit"):
        return _part_of_unit(s, at)
    number, place = _number(s, at)
    if number is None:
        return None
    number, place = _with_half_before(s, at, number, place)
    place = s.skip(place, "counter")
    unit = unit_at(s, place)
    if unit == "hour" and s.text(place) == "h" and _is_glued_pair(s, place + 1):
        minutes = s.number(place + 1) or 0
        return _made(60 * number + minutes, "minute", place + 2)  # "1h30"
    return None if unit is None else _with_half_behind(s, number, unit, place)


def _is_glued_pair(s: Stream, at: int) -> bool:
    return s.has(at, "num") and s.items[at].glued and len(s.text(at)) == 2


def _with_half_before(s: Stream, at: int, number: float, place: int) -> tuple[float, int]:
    """A half said before the unit: "one and a half hours"."""
    counted = s.skip(place, "counter")
    if s.has(at, "one") and s.has(place, "half") and s.word(place + 1, "unit"):
        number, place = 0.5, place + 1
    elif counted > place and s.has(counted, "half") and s.has(counted + 1, "unit", "counter"):
        number, place = number + 0.5, counted + 1
    elif s.has(place, "and") and s.has(s.skip(place + 1, "one"), "half"):
        behind = s.skip(place + 1, "one") + 1
        if s.word(behind, "unit"):
            number, place = number + 0.5, behind
    return number, place


def _with_half_behind(s: Stream, number: float, unit: str, place: int) -> tuple[Amount, int] | None:
    """A half said behind the unit: "an hour and a half"."""
    half = s.skip(place + 1, "and", "plus")
    if half > place + 1:
        behind = s.skip(half, "one")
        if s.has(behind, "half") and not s.has(behind + 1, "unit", "past"):
            return _made(number + 0.5, unit, behind + 1)
    elif s.has(place + 1, "half_after"):
        return _made(number + 0.5, unit, place + 2)
    return _made(number, unit, place + 1)


def _part_of_unit(s: Stream, at: int) -> tuple[Amount, int] | None:
    """ "half an hour", "a quarter of an hour"."""
    place = s.skip(at + 1, "one", "det", "of")
    unit = s.word(place, "unit")
    if s.has(at, "half"):
        return _made(0.5, unit, place + 1)
    return _made(0.25, "hour", place + 1) if unit == "hour" else None


def _made(number: float, unit: str | None, end: int) -> tuple[Amount, int] | None:
    if unit is None:
        return None
    found = amount(number, unit)
    return None if found is None else (found, end)


def _number(s: Stream, at: int) -> tuple[float | None, int]:
    for kind in ("decimal", "num", "onehalf", "couple"):
        value = s.get(at, kind)
        if isinstance(value, int | float):
            return value, s.skip(at + 1, "of") if kind == "couple" else at + 1
    if s.has(at, "one"):
        if isinstance(value := s.get(at + 1, "couple"), int):
            return value, s.skip(at + 2, "of")
        if isinstance(part := s.get(at + 1, "onehalf"), float):
            return part, at + 2
        return 1, at + 1
    halved = s.has(at + 1, "half_after") or (s.has(at + 1, "plus") and s.has(at + 2, "half"))
    if s.has(at, "unit") and halved:
        return 1, at
    return None, at
