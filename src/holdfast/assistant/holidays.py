"""Holidays that a plain rule gives: a fixed date, or the n-th weekday of a month."""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

HOLIDAYS: Final[Mapping[str, tuple[int, int] | tuple[int, int, int]]] = {
    "new_year": (1, 1),
    "epiphany": (1, 6),
    "mlk_day": (1, 3, 0),
    "valentine": (2, 14),
    "presidents_day": (2, 3, 0),
    "leap_day": (2, 29),
    "womens_day": (3, 8),
    "st_patrick": (3, 17),
    "april_fools": (4, 1),
    "labour_day": (5, 1),
    "mothers_day": (5, 2, 6),
    "memorial_day": (5, -1, 0),
    "juneteenth": (6, 19),
    "fathers_day": (6, 3, 6),
    "canada_day": (7, 1),
    "independence_day": (7, 4),
    "bastille_day": (7, 14),
    "labor_day": (9, 1, 0),
    "german_unity": (10, 3),
    "columbus_day": (10, 2, 0),
    "halloween": (10, 31),
    "all_saints": (11, 1),
    "guy_fawkes": (11, 5),
    "veterans_day": (11, 11),
    "thanksgiving": (11, 4, 3),
    "black_friday": (11, 4, 4),
    "st_nicholas": (12, 6),
    "christmas_eve": (12, 24),
    "christmas": (12, 25),
    "boxing_day": (12, 26),
    "new_years_eve": (12, 31),
    "republic_day_in": (1, 26),
    "independence_day_in": (8, 15),
    "gandhi_jayanti": (10, 2),
    "national_day_cn": (10, 1),
    "children_day_cn": (6, 1),
    "singles_day": (11, 11),
    "assumption": (8, 15),
    "hispanic_day": (10, 12),
}
"""Name to (month, day), or to (month, n, weekday); n from the end if negative."""

_MOVED: Final = {"black_friday": (11, 4, 3, 1)}
"""Those that are so many days after the n-th weekday."""


def is_known(name: str) -> bool:
    """Whether its date is known here."""
    return name in HOLIDAYS


def in_year(name: str, year: int) -> date | None:
    """Its date in a year; None in a year that has none, such as leap day."""
    rule = _MOVED.get(name) or HOLIDAYS[name]
    if len(rule) == 2:
        month, day = rule
        return date(year, month, day) if day <= calendar.monthrange(year, month)[1] else None
    month, number, weekday = rule[:3]
    found = nth_weekday(year, month, number, weekday)
    assert found is not None
    return found + timedelta(days=rule[3] if len(rule) == 4 else 0)


def nth_weekday(year: int, month: int, number: int, weekday: int) -> date | None:
    """The n-th such weekday of a month, from its end if n is negative; None if it has fewer."""
    length = calendar.monthrange(year, month)[1]
    if number > 0:
        first = (weekday - date(year, month, 1).weekday()) % 7 + 1
        day = first + 7 * (number - 1)
    else:
        last = length - (date(year, month, length).weekday() - weekday) % 7
        day = last + 7 * (number + 1)
    return date(year, month, day) if 1 <= day <= length else None
