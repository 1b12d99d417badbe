"""Single days in a sentence: "next Friday", "9th of August", "two days before Christmas"."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

from holdfast.assistant.language.amounts import read_amounts
from holdfast.assistant.language.stream import Reading, Stream
from holdfast.assistant.slots import ANY_DAY, Day, Part, Unit

_Day = tuple[Day, int]
_PERIODS = ("week", "month", "quarter", "year")


def read_day(s: Stream, at: int) -> _Day | None:
    """One day, without a preposition."""
    at = s.skip(at, "det") if not s.has(at, "edge", "nth_day") else at
    return (
        _relative(s, at)
        or _before(s, at)
        or _nth(s, at)
        or _edge(s, at)
        or _date(s, at)
        or _weekday(s, at)
        or _holiday(s, at)
        or _monthday(s, at)
        or _period(s, at)
    )


def read_day_phrase(s: Stream, at: int) -> Reading | None:
    """A day with its preposition, and the part of the day that "tonight" names along."""
    place = s.skip(at, "on", "by_day") if not s.has(at, "holiday") else at
    if place == at and s.has(at, "at") and s.has(s.skip(at + 1, "det"), "edge"):
        place = at + 1  # "at the end of the month"
    daypart = s.get(place, "daypart")
    if isinstance(daypart, tuple):
        number, part = daypart
        return [
            ("day", Day(kind="relative", number=number)),
            ("part", cast("Part", part)),
        ], place + 1
    found = read_day(s, place)
    if found is None:
        return None
    day, end = found
    if day.kind == "weekday" and isinstance(both := s.get(end - 1, "weekpart"), tuple):
        return [("day", day), ("part", both[1])], end
    if day.kind == "monthday" and day.check is None and not _may_be_monthday(s, at, place):
        return None
    return [("day", day)], s.skip(end, "day_end")


def _may_be_monthday(s: Stream, at: int, place: int) -> bool:
    return (
        place > at
        or _is_noted(s, at)
        or s.has(at, "det", "date_det")
        or s.has(place, "date_mark")
        or s.has(place + 1, "date_mark")
    )


def _is_noted(s: Stream, at: int) -> bool:
    """ "pay rent 1st", "rent monthly 1st 9am": a day of the month as notes have it."""
    if s.pack.name != "en" or at == 0 or not s.has(at, "ord") or s.items[at].shape != "number":
        return False
    ends = all(s.has(n, "tail") or s.items[n].shape == "mark" for n in range(at + 1, len(s.items)))
    return ends or s.has(at - 1, "freq")


def _relative(s: Stream, at: int) -> _Day | None:
    number = s.number(at, "relday")
    if number is None:
        return None
    day, end = Day(kind="relative", number=number), at + 1
    place = s.skip(end, "comma")
    weekday = s.number(place, "weekday")
    if weekday is not None and number >= 0 and not s.has(place + 1, "range"):
        return replace(day, check=weekday), place + 1
    if s.text(end) == "week" and number in (0, 1):  # "tomorrow week"
        return replace(day, before=-7), end + 1
    ahead = read_amounts(s, end + 1) if s.has(end, "in") and number >= 0 else None
    if ahead is not None and ahead[0][0].unit == "week":  # "heute in zwei Wochen"
        return replace(day, before=-7 * ahead[0][0].number), ahead[1]
    return day, end


def _before(s: Stream, at: int) -> _Day | None:
    """ "two days before Christmas", "the day after Thanksgiving", "a week from Friday"."""
    number, unit, place = 1, "day", at
    counted = read_amounts(s, at)
    if counted is not None and len(counted[0]) == 1:
        number, unit, place = counted[0][0].number, counted[0][0].unit, counted[1]
    elif s.word(at, "unit") == "day" and s.has(at + 1, "before", "after"):
        place = at + 1
    else:
        return None
    if unit not in ("day", "week"):
        return None
    sign = 1 if s.has(place, "before") else -1 if s.has(place, "after", "from") else 0
    if unit == "week" and s.text(place) == "on" and s.has(place + 1, "weekday"):
        sign = -1  # "a week on Friday"
    if unit == "week" and s.has(place, "relday"):
        sign, place = -1, place - 1  # "a week tomorrow"
    if not sign:
        return None
    days = sign * number * (7 if unit == "week" else 1)
    found = read_day(s, place + 1)
    if found is None or found[0].before or found[0].kind == "unclear":
        return None
    return replace(found[0], before=days), found[1]


def weekday_kind(s: Stream, at: int) -> int | None:
    """A weekday, or "day" and "working day" in their place."""
    weekday = s.number(at, "weekday")
    return weekday if weekday is not None else s.number(at, "nth_day")


def ordinal_at(s: Stream, at: int) -> tuple[int, int] | None:
    """ "third", "3rd", "last", "second to last"."""
    value = s.number(at, "nth_last")
    if value is not None:
        return value, at + 1
    value = s.number(at, "ord")
    if value is not None:
        return value, at + 1
    return (-1, at + 1) if s.has(at, "last") else None


def _nth(s: Stream, at: int) -> _Day | None:
    """ "the first Monday of next month", "the last day of August"."""
    order = ordinal_at(s, at)
    if order is None:
        return None
    number, place = order
    place = s.skip(place, "counter")
    weekday = weekday_kind(s, place)
    if weekday is None:
        return None
    inside = s.skip(place + 1, "of", "det", "in_period")
    month = s.number(inside, "month")
    day = Day(kind="nth", number=number, weekday=weekday)
    if month is not None:
        return _with_year(s, replace(day, month=month), inside + 1)
    found = period_at(s, s.skip(place + 1, "of", "in_period"))
    if found is None or found[0] not in ("month", "quarter", "year", "week"):
        return None
    unit, shift, end = found
    if unit == "week" and weekday < 7:
        return None
    return replace(day, unit=unit, shift=shift), end


def period_at(s: Stream, at: int) -> tuple[Unit, int | None, int] | None:
    """ "next month", "the year", "this quarter", "mes que viene": unit, shift and end."""
    named = s.get(at, "period")
    if isinstance(named, tuple):
        return cast("Unit", named[0]), cast("int", named[1]), at + 1
    place = s.skip(at, "det")
    shift: int | None = 0 if place > at else None
    if s.has(place, "this"):
        shift, place = 0, place + 1
    elif s.has(place, "next"):
        shift, place = 1, place + 1
    unit = s.word(place, "unit")
    if unit not in _PERIODS:
        return None
    end = place + 1
    if s.has(end, "next_after"):
        shift, end = 1, end + 1
    if shift is None:
        return None
    return cast("Unit", unit), shift, end


def _edge(s: Stream, at: int) -> _Day | None:
    """ "end of next month", "the start of the quarter", "end of August"."""
    number = s.number(at, "edge")
    if number is None:
        return _edge_behind(s, at)
    place = s.skip(at + 1, "of")
    place = place - 1 if place > at + 1 and s.has(place - 1, "det") else place
    day = Day(kind="edge", number=number)
    month = s.number(s.skip(place, "det"), "month")
    if month is not None:
        return _with_year(s, replace(day, month=month), s.skip(place, "det") + 1)
    found = period_at(s, place)
    if found is None:
        return None
    unit, shift, end = found
    return replace(day, unit=unit, shift=shift), end


def _edge_behind(s: Stream, at: int) -> _Day | None:
    """The same in the order of "12月底" and "जून के अंत"."""
    month, place = s.number(at, "month"), at + 1
    if month is None and s.has(at, "num") and s.has(at + 1, "month_mark"):
        month, place = s.number(at), at + 2
    period = None if month is not None else period_at(s, at)
    unit, shift = (period[0], period[1]) if period is not None else (s.word(at, "unit"), 0)
    place = s.skip(period[2] if period is not None else place, "of")
    number = s.number(place, "edge_after")
    if number is None or (month is None and unit not in _PERIODS):
        return None
    if month is not None:
        return _with_year(s, Day(kind="edge", number=number, month=month), place + 1)
    return Day(kind="edge", number=number, unit=cast("Unit", unit), shift=shift), place + 1


def _date(s: Stream, at: int) -> _Day | None:
    check = s.number(at, "weekday")
    place = s.skip(at + 1, "comma", "det", "on") if check is not None else at
    found = _plain_date(s, place)
    if found is None:
        if check is not None and s.has(place, "ord") and s.has(place - 1, "det"):
            return Day(kind="monthday", day=s.number(place, "ord"), check=check), place + 1
        return None
    return (replace(found[0], check=check) if check is not None else found[0]), found[1]


def _plain_date(s: Stream, at: int) -> _Day | None:
    shape = s.get(at, "date")
    if isinstance(shape, tuple):
        year, month, day = shape
        return _checked(year, month, day), s.skip(at + 1, "iso_time")
    if s.has(at, "slashed"):
        return _slashed(s, at)
    if s.has(at, "year_mark", "num") and s.has(at + 1, "year_mark") and (s.number(at) or 0) > 1900:
        found = _plain_date(s, at + 2)
        return None if found is None else (replace(found[0], year=s.number(at)), found[1])
    if s.has(at, "num") and s.has(at + 1, "month_mark") and s.has(at + 2, "num"):
        end = s.skip(at + 3, "date_mark")
        return _checked(None, s.number(at) or 0, s.number(at + 2) or 0), end
    month = s.number(at, "month")
    if month is not None:
        return _month_first(s, at, month)
    return _day_first(s, at)


def _month_first(s: Stream, at: int, month: int) -> _Day | None:
    place = s.skip(at + 1, "det")
    day = s.number(place, "ord")
    if day is None:
        day = s.number(place)
        if day is not None and 1900 <= day <= 2999 and len(s.text(place)) == 4:
            return Day(kind="unclear", unit="month", month=month, year=day), place + 1
        if day is None or day > 99 or s.has(place + 1, "unit", "ampm", "oclock"):
            return None
    return _with_year(s, _checked(None, month, day), place + 1)


def _day_first(s: Stream, at: int) -> _Day | None:
    day = s.number(at, "ord")
    if day is None:
        day = s.number(at)
    if day is None or day > 99:
        return None
    place = s.skip(at + 1, "of", "det", "date_mark")
    month = s.number(place, "month")
    if month is None:
        return None
    return _with_year(s, _checked(None, month, day), place + 1)


def _slashed(s: Stream, at: int) -> _Day | None:
    """Numbers with slashes: day first or month first only where one of them cannot be a month."""
    shape = cast("tuple[int, ...]", s.get(at, "slashed"))
    one, other = shape[0], shape[1]
    year = shape[2] + (2000 if shape[2] < 100 else 0) if len(shape) > 2 else None
    if one > 12 >= other:
        return _checked(year, other, one), at + 1
    if other > 12 >= one:
        return _checked(year, one, other), at + 1
    if s.pack.slashed_day_first:
        return _checked(year, other, one), at + 1
    if one == other:
        return _checked(year, one, other), at + 1
    return Day(kind="unclear", name="slashed"), at + 1


def _checked(year: int | None, month: int, day: int) -> Day:
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return Day(kind="unclear", name="impossible")
    return Day(kind="date", year=year, month=month, day=day)


def _with_year(s: Stream, day: Day, at: int) -> _Day:
    if day.kind == "unclear":
        return day, at
    place = s.skip(at, "comma", "of", "det")
    year = s.number(place)
    counted = s.has(place + 1, "unit") and not s.has(place + 1, "year_mark")
    if year is not None and 1900 <= year <= 2999 and len(s.text(place)) == 4 and not counted:
        return replace(day, year=year), s.skip(place + 1, "year_mark")
    found = period_at(s, place)
    if found is not None and found[0] == "year" and day.kind == "date":
        return replace(day, shift=found[1]), found[2]
    return day, at


def _weekday(s: Stream, at: int) -> _Day | None:
    shift: int | None = None
    place = at
    found = period_at(s, place)
    if found is not None and found[0] == "week":
        inside = s.skip(found[2], "on", "comma", "of")
        if s.number(inside, "weekday") is not None and not s.has(inside, "plural"):
            shift, place = found[1], inside
    elif s.has(place, "next"):
        shift, place = 1, place + 1
    elif s.has(place, "this"):
        place += 1
    weekday = s.number(place, "weekday")
    if weekday is None:
        return None
    end = place + 1
    if s.has(end, "next_after"):
        return Day(kind="weekday", weekday=weekday, shift=1), end + 1
    if s.text(end) in ("week", "fortnight") and shift is None:  # "Friday week"
        weeks = 1 if s.text(end) == "week" else 2
        return Day(kind="weekday", weekday=weekday, before=-7 * weeks), end + 1
    found = period_at(s, s.skip(end, "of", "comma", "in_period")) if shift is None else None
    if (
        found is not None
        and found[0] == "week"
        and s.skip(end, "of", "comma", "in_period") != found[2]
    ):
        return Day(kind="weekday", weekday=weekday, shift=found[1] or 0), found[2]
    if shift is None and s.has(end, "after_next"):
        return Day(kind="weekday", weekday=weekday, shift=2), end + 1
    return Day(kind="weekday", weekday=weekday, shift=shift), end


def _holiday(s: Stream, at: int) -> _Day | None:
    place = at
    shift: int | None = None
    if s.has(place, "next", "this") and s.has(place + 1, "holiday"):
        place += 1
    name = s.word(place, "holiday")
    if name is None:
        return None
    day = Day(kind="holiday", name=name, shift=shift)
    year = s.number(s.skip(place + 1, "comma"))
    if year is not None and 1900 <= year <= 2999:
        return replace(day, year=year), s.skip(place + 1, "comma") + 1
    found = period_at(s, place + 1)
    if found is not None and found[0] == "year":
        return replace(day, shift=found[1]), found[2]
    return day, place + 1


def _monthday(s: Stream, at: int) -> _Day | None:
    """ "the 15th", "the 3rd of next month", "am 15.", "15号", "15 तारीख"."""
    number = s.number(at, "ord")
    end = at + 1
    if number is None:
        marked = s.has(at, "date_mark") or (s.has(at, "date_det") and not s.has(at, "on"))
        if marked and s.has(at + 1, "num"):
            number, end = s.number(at + 1), at + 2
        elif s.has(at + 1, "date_mark"):
            number, end = s.number(at), at + 2
        elif s.has(at - 1, "date_det") and s.has(at, "num"):
            number = s.number(at)
            if s.has(end, "unit", "oclock", "counter") or (number or 0) > 31 or s.is_plain(end):
                return None
    if number is None or number < 1:
        return None
    if s.has(end, "weekday", "unit", "nth_day", "counter") and not s.has(at, "dot"):
        return None
    if number > 31:
        return Day(kind="unclear", name="impossible"), end
    found = period_at(s, s.skip(end, "of", "in_period"))
    if found is not None and found[0] == "month" and found[2] > end:
        return Day(kind="monthday", day=number, shift=found[1]), found[2]
    return Day(kind="monthday", day=number), end


def _period(s: Stream, at: int) -> _Day | None:
    """A period that names no day: "next month", "this weekend", "in August"."""
    found = period_at(s, at)
    if found is not None and (
        s.has(at, "next", "this", "period") or s.has(found[2] - 1, "next_after")
    ):
        return Day(kind="unclear", unit=found[0], shift=found[1] or 0), found[2]
    year = s.number(at + 1)
    if s.has(at, "in") and year is not None and 1900 <= year <= 2999 and len(s.text(at + 1)) == 4:
        return Day(kind="unclear", unit="year", year=year), at + 2
    month = s.number(at + 1, "month") if s.has(at, "in") else None
    if month is not None and 1900 <= (s.number(at + 2) or 0) <= 2999:
        return Day(kind="unclear", unit="month", month=month, year=s.number(at + 2)), at + 3
    if s.has(at, "next", "this") and s.has(at + 1, "weekend"):
        return Day(kind="unclear", unit="weekend", shift=1 if s.has(at, "next") else 0), at + 2
    return None


def edge_kind(day: Day) -> Literal["start", "end"] | None:
    """Whether a day is the first or the last one of a period."""
    if day.kind == "edge" or (day.kind == "nth" and day.weekday == ANY_DAY):
        return "start" if day.number == 1 else "end" if day.number == -1 else None
    return None
