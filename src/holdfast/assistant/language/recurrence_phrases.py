"""What recurs: "every other Friday", "the last day of each month", "twice a day", "montags"."""

from __future__ import annotations

from typing import cast

from holdfast.assistant.language.amounts import amount, read_amount
from holdfast.assistant.language.day_phrases import ordinal_at, read_day, weekday_kind
from holdfast.assistant.language.lexicon import Value
from holdfast.assistant.language.stream import Reading, Stream
from holdfast.assistant.slots import Amount, Day, Nth, Unit

_SHORT = ("second", "minute", "hour")
_Found = list[tuple[str, Value]]


def stepped(found: Amount) -> tuple[str, Value]:
    """Hours and shorter step inside the day; longer units name days."""
    return ("sub" if found.unit in _SHORT else "every"), found


def read_every(s: Stream, at: int) -> Reading | None:
    """What follows "every"."""
    if not s.has(at, "every"):
        return None
    place = s.skip(at + 1, "single", "counter", "det", "of")
    if s.has(place, "leap_year"):
        return _leap_year(s, at, place + 1)
    if s.has(at, "skip_one"):
        return spaced_unit(s, place, 2)
    if s.has(place, "few"):
        unit = s.skip(place + 1, "of")
        return ([("trouble", "vague_recurrence")], unit + 1) if s.has(unit, "unit") else None
    return (
        _every_nth(s, place)
        or _every_amount(s, place)
        or _every_ordinal(s, place)
        or _every_days(s, place, 1)
        or _every_date(s, place)
        or every_unit(s, place)
    )


def _leap_year(s: Stream, at: int, end: int) -> Reading | None:
    """ "every leap year on February 29", the one day that no other year has."""
    day = read_day(s, s.skip(end, "on", "comma"))
    if day is not None and day[0].kind == "date" and (day[0].month, day[0].day) == (2, 29):
        return [("every", Amount(number=1, unit="year")), ("yearly", (day[0],))], day[1]
    said = any(s.has(n, "num", "ord") and s.text(n)[:2] == "29" for n in range(at))
    if said or any(s.word(n, "holiday") == "leap_day" for n in range(len(s.items))):
        return [("every", Amount(number=1, unit="year"))], end
    return [("trouble", "vague_recurrence")], end


def _every_amount(s: Stream, at: int) -> Reading | None:
    spaced = read_amount(s, at + 1) if s.has(at, "spaced") else None
    if spaced is not None:  # "每隔50分钟", but "每隔3天" is every third or every fourth day
        short = spaced[0].unit in _SHORT
        step = stepped(spaced[0]) if short else ("trouble", "vague_recurrence")
        return [step], s.skip(spaced[1], "every_end")
    if s.has(at, "other"):
        return spaced_unit(s, at + 1, s.number(at, "other") or 2)
    number = s.number(at)
    if number is not None and s.has(s.skip(at + 1, "counter"), "weekday", "daygroup"):
        return _every_days(s, s.skip(at + 1, "counter"), number)
    unit_half = s.word(at, "unit")
    if unit_half and s.has(at + 1, "and", "plus") and s.has(s.skip(at + 2, "one"), "half"):
        made = amount(1.5, unit_half)
        return ([stepped(made)], s.skip(at + 2, "one") + 1) if made else None
    found = read_amount(s, at)
    if found is None and unit_half == "hour" and s.has(at + 1, "and"):
        found = Amount(number=1, unit="hour"), at + 1
    if found is None:
        return None
    found = _with_minutes(s, *found)
    return [stepped(found[0])], s.skip(found[1], "every_end")


def _with_minutes(s: Stream, step: Amount, end: int) -> tuple[Amount, int]:
    """The rest of "every hour and 15 minutes"."""
    more = read_amount(s, s.skip(end, "and")) if step.unit == "hour" else None
    if more is None or more[0].unit != "minute":
        return step, end
    return Amount(number=60 * step.number + more[0].number, unit="minute"), more[1]


def spaced_unit(s: Stream, at: int, number: int) -> Reading | None:
    at = s.skip(at, "counter")
    unit = s.word(at, "unit")
    if unit is not None:
        made = amount(number, unit)
        return ([stepped(made)], s.skip(at + 1, "every_end")) if made else None
    if s.has(at, "part"):
        return [("every", Amount(number=number, unit="day"))], at
    return _every_days(s, at, number)


def _every_nth(s: Stream, at: int) -> Reading | None:
    """ "every second Tuesday of the month", "every 1st and 3rd Monday": no interval of weeks."""
    nths = read_nths(s, at)
    if nths is None:
        return _every_nth_of_month(s, at)
    held = dict(nths[0])
    if held.get("every") is not None:
        return nths
    numbered = cast("tuple[Nth, ...]", held["nths"])
    inside = len(numbered) > 1 or numbered[0].number in (1, -1)
    if not inside or held.get("months") or any(each.weekday > 6 for each in numbered):
        return None
    return [("every", Amount(number=1, unit="month")), *nths[0]], nths[1]


def _every_nth_of_month(s: Stream, at: int) -> Reading | None:
    """ "every fourth Thursday of November"."""
    day = read_day(s, at)
    if day is None or day[0].kind != "nth" or day[0].month is None or day[0].year is not None:
        return None
    return [("every", Amount(number=1, unit="year")), ("day", day[0])], day[1]


def _every_ordinal(s: Stream, at: int) -> Reading | None:
    monthdays = read_monthdays(s, at, every=True)
    if monthdays is not None:
        return monthdays
    order = ordinal_at(s, at)
    if order is not None and order[0] > 0:
        return spaced_unit(s, order[1], order[0])
    if s.has(at, "edge") and s.word(s.skip(at + 1, "of", "det"), "unit"):
        return _edge_of(s, at, s.skip(at + 1, "of", "det"))
    return None


def _every_days(s: Stream, at: int, number: int) -> Reading | None:
    found = weekdays_at(s, at)
    if found is None:
        return None
    days, end, _ = found
    read: _Found = [("every", Amount(number=number, unit="week")), ("weekdays", days)]
    date = s.number(end) if s.pack.name in ("es", "fr") and len(days) == 1 else None
    if date is not None and date <= 31 and not s.has(end + 1, "oclock", "unit", "month", "of"):
        read.append(("monthdays", (date,)))  # "chaque vendredi 13"
        end += 1
    if isinstance(both := s.get(end - 1, "weekpart"), tuple):
        read.append(("part", both[1]))
    return read, end


def _every_date(s: Stream, at: int) -> Reading | None:
    """ "every April 30 and October 31", "every Christmas", "every January"."""
    days: list[Day] = []
    end = at
    while len(days) < 12:
        found = read_day(s, s.skip(end, "and", "comma", "every") if days else at)
        if found is None or found[0].kind not in ("date", "holiday") or found[0].year is not None:
            break
        days.append(found[0])
        end = found[1]
    if days:
        return [("every", Amount(number=1, unit="year")), ("yearly", tuple(days))], end
    months = months_at(s, at)
    if months is not None:
        return [("every", Amount(number=1, unit="year")), ("months", months[0])], months[1]
    return None


def every_unit(s: Stream, at: int) -> Reading | None:
    if s.has(at, "part", "parts"):
        return [("every", Amount(number=1, unit="day"))], at
    unit = s.word(at, "unit")
    if unit is None:
        return None
    if unit in ("month", "quarter", "year") and s.has(at + 1, "edge_after"):
        return _edge_of(s, at + 1, at)
    made = amount(1, unit)
    if s.has(at + 1, "few") and s.has(at + 2, "times_per"):
        return [("trouble", "vague_recurrence")], at + 3  # "每天好几次"
    if made is not None and s.has(at + 1, "num") and s.has(at + 2, "times_per"):
        return [stepped(made), ("ntimes", s.number(at + 1))], at + 3  # "每天两次"
    return ([stepped(made)], s.skip(at + 1, "every_end")) if made else None


def _edge_of(s: Stream, edge: int, unit_at: int) -> Reading | None:
    number = s.number(edge, "edge") or s.number(edge, "edge_after") or -1
    unit = cast("Unit", s.word(unit_at, "unit"))
    end = max(edge, unit_at) + 1
    if unit == "day":
        return [("every", Amount(number=1, unit="day")), ("part", "end_of_day")], end
    if unit == "year":
        day = Day(kind="date", month=12 if number < 0 else 1, day=31 if number < 0 else 1)
        return [("every", Amount(number=1, unit="year")), ("yearly", (day,))], end
    if unit in ("month", "quarter"):
        return [("every", Amount(number=1, unit=unit)), ("monthdays", (number,))], end
    if unit == "week" and number == 1:
        return [("every", Amount(number=1, unit=unit)), ("weekdays", (0,))], end
    return [("trouble", "no_day")], end


def read_edges(s: Stream, at: int) -> Reading | None:
    """ "at the end of each month", "two days before the end of every quarter"."""
    place = s.skip(at, "on", "at", "det")
    back = 0
    counted = read_amount(s, place)
    if counted is not None and counted[0].unit == "day" and s.has(counted[1], "before"):
        back, place = counted[0].number, s.skip(counted[1] + 1, "det")
    elif s.word(place, "unit") == "day" and s.has(place + 1, "before"):
        back, place = 1, s.skip(place + 2, "det")
    number = s.number(place, "edge")
    if number is None and back and s.has(place, "last") and s.has(place + 1, "nth_day"):
        number, place = -1, place + 1
    unit_place = s.skip(place + 1, "of", "every", "counter")
    if number is None or not s.has(s.skip(place + 1, "of"), "every"):
        return None
    if s.word(unit_place, "unit") is None:
        return None
    found = _edge_of(s, place, unit_place)
    if found is None or not back:
        return found
    if number > 0 or dict(found[0]).get("monthdays") is None:
        return [("trouble", "not_understood")], found[1]
    return [
        ("monthdays", (-1 - back,)) if k == "monthdays" else (k, v) for k, v in found[0]
    ], found[1]


def weekdays_at(s: Stream, at: int) -> tuple[tuple[int, ...], int, bool] | None:
    """A list, range or group of weekdays; and whether it recurs by its form alone."""
    first = _weekday_range(s, at)
    if first is None:
        return None
    days, end, recurs = first
    count = 1
    while count < 8:
        place = s.skip(end, "and", "comma", "slash", "or")
        if place == end and not _goes_on(s, end):
            break
        place = s.skip(place, "on", "every", "plural_det")
        more = _weekday_range(s, place)
        if more is None or _has_own_date(s, more[1]) or _says_every_anew(s, at, end, place):
            break
        days = (*days, *more[0])
        end, recurs, count = more[1], True, count + 1
    return tuple(sorted(set(days))), end, recurs


def _says_every_anew(s: Stream, at: int, end: int, place: int) -> bool:
    """ "on weekends, every Tuesday": no list, unlike "every Monday, every Tuesday"."""
    between = range(end, place)
    anew = any(s.has(n, "every") for n in between) and not any(s.has(n, "and") for n in between)
    return anew and not s.has(at - 1, "every") and not s.has(at, "every")


def _goes_on(s: Stream, at: int) -> bool:
    """ "mon tue wed": weekdays in a row, without a comma."""
    return s.has(at, "weekday") and s.has(at - 1, "weekday") and not s.has(at - 1, "plural")


def _has_own_date(s: Stream, at: int) -> bool:
    place = s.skip(at, "comma", "det")
    return s.has(place, "month", "date") and s.has(place + 1, "num", "ord")


def _weekday_range(s: Stream, at: int) -> tuple[tuple[int, ...], int, bool] | None:
    plural = False
    if (
        s.has(at, "plural_det")
        and s.has(at + 1, "weekday", "daygroup")
        and not s.has(at + 2, "next_after", "num", "ord")
    ):
        plural, at = True, at + 1
    group = s.get(at, "daygroup")
    if isinstance(group, tuple):
        return group, at + 1, plural or s.has(at, "plural")
    first = s.number(at, "weekday")
    if first is None:
        return None
    opened = s.has(at - 1, "from", "between")
    if s.has(at + 1, "range") or (opened and s.has(at + 1, "until", "and")):
        place = s.skip(at + 2, "det")
        last = s.number(place, "weekday")
        if last is not None:
            days = tuple((first + n) % 7 for n in range((last - first) % 7 + 1))
            return days, s.skip(place + 1, "window_end"), True
    return (first,), at + 1, plural or s.has(at, "plural")


def read_weekdays(s: Stream, at: int) -> Reading | None:
    """Weekdays that recur by their form: plural, list, range or group."""
    place = at if s.has(at, "plural_det") else s.skip(at, "on", "at_group")
    if s.has(place, "from", "between") and s.has(place + 1, "weekday"):
        place += 1
    found = weekdays_at(s, place)
    if found is None:
        return None
    days, end, recurs = found
    # "Sunday nights": the plural stands on the part of the day, which the reader of times takes.
    recurs = recurs or s.has(end, "parts")
    if not recurs or s.has(place - 1, "next", "this"):
        return None
    read: _Found = [("weekdays", days)]
    if isinstance(both := s.get(end - 1, "weekpart"), tuple) and s.pack.name == "en":
        read.append(("part", both[1]))  # "weeknights"
    return read, end


def months_at(s: Stream, at: int) -> tuple[tuple[int, ...], int] | None:
    """A list or range of months."""
    first = s.number(at, "month")
    if first is None or s.has(at + 1, "num", "ord"):
        return None
    months, end = [first], at + 1
    if s.has(end, "range") and s.number(end + 1, "month") is not None:
        last = cast("int", s.number(end + 1, "month"))
        if not s.has(end + 2, "num", "ord"):
            return tuple((first - 1 + n) % 12 + 1 for n in range((last - first) % 12 + 1)), end + 2
    while len(months) < 12:
        place = s.skip(end, "and", "comma", "or")
        following = s.number(place, "month")
        if place == end or following is None or s.has(place + 1, "num", "ord"):
            break
        months.append(following)
        end = place + 1
    return tuple(sorted(set(months))), end


def read_months(s: Stream, at: int) -> Reading | None:
    """ "in January and July"."""
    if s.has(at, "from", "between"):
        return _month_range(s, at)
    if not s.has(at, "in", "in_period", "of", "during") or s.has(at + 1, "year_mark"):
        return None
    found = months_at(s, s.skip(at + 1, "det", "every"))
    if found is None or (s.number(found[1]) or 0) > 1900:
        return None
    return [("months", found[0])], found[1]


def _month_range(s: Stream, at: int) -> Reading | None:
    """ "from June to August", "between November and March"."""
    first = s.number(at + 1, "month")
    joint = s.has(at + 2, "range", "until") or (s.has(at, "between") and s.has(at + 2, "and"))
    last = s.number(at + 3, "month")
    if first is None or last is None or not joint or s.has(at + 4, "num", "ord"):
        return None
    months = tuple((first - 1 + n) % 12 + 1 for n in range((last - first) % 12 + 1))
    return [("months", months)], s.skip(at + 4, "window_end")


def _of_every(s: Stream, at: int) -> tuple[Amount, int] | None:
    """ "of each month", "jedes Monats", "of every other month", "of the month"; and its end."""
    place = s.skip(at, "of", "in_period")
    every = s.has(place, "every")
    owned = place > at and (s.has(place, "det") or s.has(place - 1, "det"))
    owned = owned or (place > at and s.pack.name == "en" and s.text(place) == "month")
    if not every and not owned and not s.has(place, "monthly_of"):
        return None
    if s.has(place, "monthly_of"):
        return Amount(number=1, unit="month"), place + 1
    place = s.skip(place, "every", "det", "counter")
    number = 1
    if every and s.has(place + 1, "unit"):
        spaced = s.number(place, "other") or s.number(place) or s.number(place, "ord")
        if spaced:
            number, place = spaced, place + 1
    unit = s.word(place, "unit")
    if unit not in ("month", "quarter", "year") or (unit == "year" and not every):
        return None
    return Amount(number=number, unit=cast("Unit", unit)), place + 1


def read_nths(s: Stream, at: int) -> Reading | None:
    """ "the second and fourth Wednesday of the month", "last working day of each quarter"."""
    place = s.skip(at, "on", "by_day", "det")
    found: list[Nth] = []
    end = place
    while len(found) < 10:
        start = s.skip(end, "and", "comma", "on", "det", "or") if found else place
        group = _nth_group(s, start)
        if group is None:
            break
        found += group[0]
        end = group[1]
    if not found:
        return None
    period = _of_every(s, end)
    if period is not None:
        return [("every", period[0]), ("nths", tuple(found))], period[1]
    place = s.skip(end, "of", "in_period", "det")
    months = months_at(s, place) if place > end else None
    if months is not None and not (s.number(months[1]) or 0) > 1900:
        behind = s.skip(months[1], "comma")
        if len(months[0]) > 1 or s.has(behind, "every"):
            return [("nths", tuple(found)), ("months", months[0])], months[1]
        return None
    return [("nths", tuple(found))], end


def _nth_group(s: Stream, at: int) -> tuple[list[Nth], int] | None:
    orders: list[int] = []
    end = at
    while len(orders) < 10:
        order = ordinal_at(s, s.skip(end, "and", "comma", "det", "or") if orders else at)
        if order is None:
            break
        orders.append(order[0])
        end = s.skip(order[1], "counter")
    end = s.skip(end, "counter")
    weekday = weekday_kind(s, end)
    if not orders or weekday is None:
        return None
    return [Nth(number=each, weekday=weekday) for each in orders], end + 1


def read_monthdays(s: Stream, at: int, *, every: bool = False) -> Reading | None:
    """ "the 1st and 15th of each month", "am 15. jedes Monats", "le 1er de chaque mois"."""
    place = s.skip(at, "on", "by_day", "det", "date_det")
    days: list[int] = []
    end = place
    while len(days) < 31:
        start = s.skip(end, "and", "comma", "det", "date_det", "on", "or") if days else place
        one = _monthday_at(s, start, with_weekday=every and s.pack.name == "zh")
        if one is None:
            break
        days.append(one[0])
        end = one[1]
    if not days:
        return None
    period = _of_every(s, end)
    if period is not None and period[0].unit == "month":
        return [("every", period[0]), ("monthdays", tuple(days))], period[1]
    weekday = s.number(end, "weekday") if every and s.pack.name == "zh" else None
    if weekday is not None and len(days) == 1:  # "每个13号星期五"
        month = Amount(number=1, unit="month")
        return [("every", month), ("monthdays", tuple(days)), ("weekdays", (weekday,))], end + 1
    months = months_at(s, s.skip(end, "of")) if s.has(end, "of") and s.has(place, "ord") else None
    if months is not None and (len(months[0]) > 1 or len(days) > 1):
        return [("monthdays", tuple(days)), ("months", months[0])], months[1]
    if not all(
        s.has(n, "ord", "and", "comma", "det", "on", "date_mark", "num", "or", "date_det")
        for n in range(place, end)
    ):
        return None
    if (
        every
        and s.has(place, "ord")
        and s.items[place].shape == "number"
        and not s.has(end, "unit", "weekday", "nth_day", "month", "daygroup", "part")
    ):
        return [("every", Amount(number=1, unit="month")), ("monthdays", tuple(days))], end
    marked = any(s.has(n, "ord", "date_mark") for n in range(place, end))
    if len(days) > 1 and marked and not s.has(end, "month", "of"):
        return [("monthdays", tuple(days))], end
    return None


def _monthday_at(s: Stream, at: int, *, with_weekday: bool = False) -> tuple[int, int] | None:
    place = s.skip(at, "date_mark")
    number = s.number(place, "ord")
    if number is None:
        number = s.number(place)
    if number is None or number > 31:
        return None
    end = s.skip(place + 1, "date_mark")
    if with_weekday and s.has(end, "weekday"):
        return number, end
    if s.has(end, "weekday", "nth_day", "ampm", "oclock", "counter") and not s.has(place, "dot"):
        return None
    if s.has(end, "unit"):
        return None
    return number, end
