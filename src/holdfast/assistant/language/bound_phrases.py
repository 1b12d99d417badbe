"""Starts, ends, lengths, exceptions, offsets and zones in a sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from holdfast.assistant.language.amounts import read_amounts
from holdfast.assistant.language.clock_phrases import read_item
from holdfast.assistant.language.day_phrases import period_at, read_day
from holdfast.assistant.language.lexicon import Value
from holdfast.assistant.language.recurrence_phrases import months_at, weekdays_at
from holdfast.assistant.language.stream import Reading, Stream
from holdfast.assistant.slots import Amount, Day, Point, Unit
from holdfast.assistant.zone_names import ZONE_CODES, find_zone_name

_BEFORE_TROUBLE = (
    "on", "at", "every", "by_day", "part_prep", "in", "det", "next", "this", "of", "edge",
    "before", "after", "from", "until", "start", "ord", "nth_day", "last",
)  # fmt: skip


def read_offset(s: Stream, at: int) -> Reading | None:
    """ "in two hours", "an hour from now", "2 घंटे बाद", "三天后"."""
    opened = s.has(at, "in") or _sets_timer(s, at)
    place = s.skip(at + 1, "det", "roughly") if opened or s.has(at, "for") else at
    if opened and s.has(place, "few") and s.has(s.skip(place + 1, "of"), "unit"):
        return [("trouble", "vague_time")], s.skip(place + 1, "of") + 1
    if opened and s.has(place, "one") and s.has(place + 1, "few") and s.has(place + 2, "unit"):
        return [("trouble", "vague_time")], place + 3
    if opened and s.has(place, "num") and (_ends_here(s, place + 1) or _lacks_unit(s, at, place)):
        return [("trouble", "vague_time")], place + 1  # "remind me in ten"
    if _is_vague_distance(s, place):
        return [("trouble", "vague_time")], s.skip(place, "one", "few", "of") + 2
    found = read_amounts(s, place)
    if found is None:
        return None
    amounts, end = found
    if s.has(end, "later"):
        return [("offset", amounts)], s.skip(end, "later")
    if s.has(end, "from") and s.number(end + 1, "relday") == 0:
        return [("offset", amounts)], end + 2
    if not opened or s.has(end, "before", "after"):
        return None
    if s.has(end, "from") and read_day(s, end + 1) is not None:
        return None
    if s.has(s.skip(end, "quote_mark"), "time_of"):
        end = s.skip(end, "quote_mark") + 1  # "in two weeks' time"
    if s.has(place - 1, "det") and place > at + 1:
        return None  # "in the two hours that follow"
    return [("offset", amounts)], end


def read_timer(s: Stream, at: int) -> Reading | None:
    """ "timer 10 minutes", "5 min timer tea"."""
    found = read_amounts(s, at) if s.has(at, "num", "decimal", "half") else None
    if found is None or found[0][-1].unit not in ("second", "minute", "hour"):
        return None
    return (
        ([("offset", found[0])], found[1])
        if "timer" in (s.text(at - 1), s.text(found[1]))
        else None
    )


def _ends_here(s: Stream, at: int) -> bool:
    return at >= len(s.items) or s.has(at, "comma", "tail", "lead")


def _lacks_unit(s: Stream, at: int, place: int) -> bool:
    """ "in 5 call Bob": a number in front that nothing counts."""
    first = all(s.has(n, "lead") or s.items[n].shape == "mark" for n in range(at))
    counted = s.has(place + 1, "unit", "month", "short_unit", "weekday", "time_of", "oclock")
    return first and s.is_plain(place + 1) and not counted and not s.items[place + 1].glued


def _sets_timer(s: Stream, at: int) -> bool:
    """ "set a timer for 20 minutes", where nothing recurs."""
    named = s.has(at, "for") and s.word(at - 1, "lead") == "remind"
    found = read_amounts(s, at + 1) if named else None
    if found is None or found[0][-1].unit not in ("second", "minute", "hour"):
        return False
    return not any(s.has(n, "every", "freq", "plural") for n in range(len(s.items)))


def _is_vague_distance(s: Stream, at: int) -> bool:
    """ "a few days after …", "several hours later": how far nobody can say."""
    place = s.skip(at, "one", "few", "of")
    if not any(s.has(n, "few") for n in range(at, place)):
        return False
    return s.has(place, "unit") and s.has(place + 1, "before", "after", "later", "from")


def read_shift(s: Stream, at: int) -> Reading | None:
    """ "15 minutes before …": by how much the time that follows is moved."""
    found = read_amounts(s, at)
    if found is None:
        return None
    amounts, end = found
    sign = -1 if s.has(end, "before") else 1 if s.has(end, "after") else 0
    if not sign:
        return None
    moved = tuple(replace(each, number=sign * each.number) for each in amounts)
    if sign < 0 and _shifts_back(s, at, end + 1):
        return [("shift_back", moved)], end + 1
    return [("shift", moved)], s.skip(end + 1, "det", "at")


def _shifts_back(s: Stream, at: int, end: int) -> bool:
    """ "it leaves Friday at 18:40, remind me 3 hours before": the time was said already."""
    ends = _ends_here(s, end) or s.has(end, "pronoun") or s.text(end) in ("that", "then")
    return ends and any(s.has(n, "clock", "ampm", "part", "oclock", "at") for n in range(at))


def read_start(s: Stream, at: int) -> Reading | None:
    """ "starting June 1", "from Monday on", "beginning at 10:00", "starting next week"."""
    started = s.has(at, "start")
    behind = _start_behind(s, at) or _date_range(s, at)
    if behind is not None:
        return behind
    if not started and not s.has(at, "from", "between"):
        return None
    place = s.skip(at + 1, "on", "from", "at", "with_start", "by_day")
    named = s.skip(place, "in", "in_period")
    month = s.number(named, "month")
    begun = started or (not s.has(named + 1, "range", "until") and _begins(s, at, named + 1))
    if begun and month is not None and not s.has(named + 1, "num", "ord", "and"):
        return [("start", Point(day=Day(kind="edge", number=1, month=month)))], named + 1
    point = point_at(s, place, bare=s.has(place - 1, "at") or _steps(s, at, place + 1))
    if point is None:
        return None
    found, end = point
    if started:
        return _started(found, s.skip(end, "onwards"))
    if found.day is None:
        return ([("start", found)], s.skip(end, "onwards")) if _steps(s, at, end) else None
    if s.has(end, "onwards"):
        return [("start", found)], end + 1
    if s.has(end, "range", "until") or (s.has(at, "between") and s.has(end, "and")):
        last = point_at(s, s.skip(end + 1, "det"), bare=False)
        if last is not None and last[0].day is not None and not _are_weekdays(found, last[0]):
            return [("start", found), ("until", last[0])], s.skip(last[1], "window_end")
    if found.clock is None and s.word(at, "from") == "start":
        return [("start", found)], end
    return _started(found, end) if s.has(at, "from") and _begins(s, at, end) else None


def _date_range(s: Stream, at: int) -> Reading | None:
    """ "June 15-30, daily": the days between two of one month."""
    month, first = s.number(at, "month"), s.number(at + 1)
    last = s.number(at + 3) if s.has(at + 2, "range") else None
    if month is None or first is None or last is None or not first < last <= 31:
        return None
    if s.has(at + 4, "ampm", "oclock", "unit") or not s.has(
        s.skip(at + 4, "comma"), "every", "freq"
    ):
        return None
    days = [Point(day=Day(kind="date", month=month, day=each)) for each in (first, last)]
    return [("start", days[0]), ("until", days[1])], at + 4


def _steps(s: Stream, at: int, end: int) -> bool:
    """ "every 3 hours from 9am", which has no end and so is no window."""
    if not s.has(at, "from") or s.has(end, "range", "until"):
        return False
    before = s.word(at - 1, "unit") in ("minute", "hour") or s.has(at - 1, "freq")
    behind = s.skip(end, "comma")
    return before or (
        s.has(behind, "every")
        and any(s.word(behind + n, "unit") in ("minute", "hour") for n in (1, 2))
    )


def _start_behind(s: Stream, at: int) -> Reading | None:
    """ "कल से हर दिन": a start that is marked behind the day."""
    point = point_at(s, at, bare=False) if s.pack.name == "hi" else None
    if point is None or point[0].day is None or not s.has(point[1], "start_after"):
        return None
    recurs = s.has(s.skip(point[1] + 1, "comma"), "every", "freq")
    return _started(point[0], point[1] + 1) if recurs else None


def _begins(s: Stream, at: int, end: int) -> bool:
    """ "from tomorrow, every second day", "daily from June 1": what recurs stands beside it."""
    behind = s.skip(end, "comma", "and", "on", "at")
    if s.has(behind, "every", "freq", "plural", "ntimes", "start") or s.has(behind + 1, "times"):
        return True
    before = at - 2 if s.has(at - 1, "comma") else at - 1
    if not s.has(
        before, "unit", "weekday", "daygroup", "ampm", "oclock", "clock", "part", "freq", "num"
    ):
        return any(s.has(n, "every", "freq") for n in range(end, len(s.items))) and all(
            s.has(n, "lead") for n in range(at)
        )
    return any(s.has(n, "every", "freq", "plural", "plural_det") for n in range(at))


def _are_weekdays(first: Point, last: Point) -> bool:
    """Whether "from Monday to Friday" is a range of weekdays, which recurs."""
    days = (first.day, last.day)
    return all(day is not None and day.kind == "weekday" and day.shift is None for day in days)


def _started(point: Point, end: int) -> Reading:
    """A period stands for its first day: "starting next week"."""
    day = point.day
    if day is None or day.kind != "unclear":
        return [("start", point)], end
    if day.unit == "weekend" or day.name:
        return [("trouble", "not_understood")], end
    first = Day(kind="edge", number=1, unit=day.unit, shift=day.shift)
    return [("start", replace(point, day=first))], end


def point_at(s: Stream, at: int, *, bare: bool) -> tuple[Point, int] | None:
    """A day, a time, or both; a time alone may be a bare number behind "at"."""
    at = s.skip(at, "on")
    day = read_day(s, at)
    if day is not None and (
        day[0].kind != "monthday" or s.has(at, "det", "ord", "date_det", "num")
    ):
        end = s.skip(day[1], "day_end")
        if s.has(end, "at") or s.has(end, "clock"):
            time = read_item(s, end, bare=False)
            if time is not None:
                return Point(day=day[0], clock=time[0]), time[1]
        return Point(day=day[0]), end
    time = read_item(s, at, bare=bare)
    if time is None:
        return None
    if s.has(time[1], "on") or s.has(time[1], "relday"):
        on = read_day(s, s.skip(time[1], "on"))
        if on is not None:
            return Point(day=on[0], clock=time[0]), on[1]
    return Point(clock=time[0]), time[1]


def read_until(s: Stream, at: int) -> Reading | None:
    """ "until the end of August", "through June 30", "28 फरवरी तक"."""
    if s.has(at, "until"):
        place = s.skip(at + 1, "det", "until", "date_det") if not s.has(at + 1, "edge") else at + 1
        place = place - 1 if s.has(place - 1, "date_det") else place
        month = s.number(place, "month")
        if month is not None and not s.has(place + 1, "num", "ord"):
            day = Day(kind="edge", number=-1, month=month)
            if s.word(at, "until") == "through":
                return [("until", Point(day=day))], place + 1
            return [("until", Point(day=Day(kind="unclear", unit="month")))], place + 1
        point = point_at(s, place, bare=True)
        if point is not None and point[0].clock is not None and s.text(point[1]) == "utc":
            return [("until", replace(point[0], zone="UTC"))], point[1] + 1
        return None if point is None else ([("until", point[0])], point[1])
    return _until_after(s, at)


def _until_after(s: Stream, at: int) -> Reading | None:
    """The same behind the day, as in Hindi."""
    amounts = read_amounts(s, at)
    if amounts is not None and len(amounts[0]) == 1 and s.has(amounts[1], "until_after"):
        return [("length", amounts[0][0])], amounts[1] + 1
    day = read_day(s, at)
    if day is not None:
        end = s.skip(day[1], "day_end")
        if s.has(end, "until_after"):
            return [("until", Point(day=day[0]))], end + 1
    return None


def read_length(s: Stream, at: int) -> Reading | None:
    """ "for two months", "for the next 5 days", "for the rest of the year"."""
    opened = s.has(at, "for")
    place = s.skip(at + 1, "det", "next", "this") if opened else s.skip(at, "det")
    if s.has(place, "rest"):
        found = period_at(s, s.skip(place + 1, "of"))
        if found is not None:
            return [("within", Amount(number=found[1] or 0, unit=found[0]))], found[2]
    if not opened and not s.has(at, "the_next"):
        lasting = read_amounts(s, at)
        if lasting is not None and len(lasting[0]) == 1 and s.has(lasting[1], "length_end"):
            return [("length", lasting[0][0])], lasting[1] + 1
        return None
    if not opened:
        place = at + 1
    if s.has(place, "num") and s.has(place + 1, "times"):
        return [("count", s.number(place))], place + 2
    if s.has(place, "num") and s.has(place + 1, "parts"):  # "for 4 nights"
        return [("length", Amount(number=s.number(place) or 0, unit="day"))], place + 2
    amounts = read_amounts(s, place)
    if amounts is None and s.has(place - 1, "next") and s.word(place, "unit") in ("minute", "hour"):
        unit = cast("Unit", s.word(place, "unit"))
        return [("length", Amount(number=1, unit=unit))], place + 1
    if amounts is None:
        found = period_at(s, s.skip(at + 1, "det"))
        if found is not None and s.has(at + 1, "next", "this", "det") and found[1] == 0:
            return [("within", Amount(number=0, unit=found[0]))], found[2]
        return None
    if len(amounts[0]) > 1:
        return [("trouble", "not_understood")], amounts[1]
    return [("length", amounts[0][0])], s.skip(amounts[1], "length_end")


def read_except(s: Stream, at: int) -> Reading | None:
    """ "except Mondays and May 25", "but not in August", "außer sonntags"."""
    if not s.has(at, "except"):
        return _except_after(s, at)
    if s.word(at, "except") == "but" and not s.has(
        s.skip(at + 1, "on", "det"), "weekday", "daygroup", "month", "holiday"
    ):
        return None
    found: list[tuple[str, Value]] = []
    end = at + 1
    while len(found) < 20:
        start = s.skip(end, "and", "comma", "or", "except") if found else end
        if found and start == end:
            break
        one = _excluded(s, s.skip(start, "on", "for", "in", "in_period", "from", "between"))
        if one is None:
            break
        found.append(one[0])
        end = one[1]
    return (found, s.skip(end, "except_after")) if found else None


def _excluded(s: Stream, at: int) -> tuple[tuple[str, Value], int] | None:
    if s.has(at, "public_holidays"):
        return ("trouble", "unknown_date"), at + 1
    weekdays = weekdays_at(s, s.skip(at, "det", "every"))
    months = months_at(s, at)
    day = read_day(s, at)
    dated = (
        day is not None and s.has(weekdays[1], "comma", "det") and day[1] > weekdays[1]
        if weekdays
        else False
    )
    single = day is not None and day[0].kind == "weekday" and day[0].shift is not None
    if weekdays is not None and not dated and not single:
        return ("except_weekdays", weekdays[0]), weekdays[1]
    if day is not None:
        if day[0].kind in ("unclear", "nth", "edge"):
            return ("trouble", "not_understood"), day[1]
        last = read_day(s, day[1] + 1) if s.has(day[1], "range", "until") else None
        if last is not None:
            return ("except_range", (day[0], last[0])), last[1]
        return ("except_day", day[0]), day[1]
    if months is not None:
        return ("except_months", months[0]), months[1]
    time = read_item(s, at, bare=False)
    if time is not None:
        return ("except_time", time[0]), time[1]
    return None


def _except_after(s: Stream, at: int) -> Reading | None:
    weekdays = weekdays_at(s, at)
    if weekdays is not None:
        end = s.skip(weekdays[1], "day_end")
        if s.has(end, "except_after"):
            return [("except_weekdays", weekdays[0])], end + 1
    day = read_day(s, at) if s.has(at, "month", "num", "ord", "date", "relday") else None
    if day is not None:
        end = s.skip(day[1], "day_end")
        if s.has(end, "except_after"):
            return [("except_day", day[0])], end + 1
    return None


def read_zone(s: Stream, at: int) -> Reading | None:
    """ "Berlin time", "UTC", "in Tokyo", "my time"; a name that is no zone is reported."""
    if s.has(at, "my_time"):
        return [("zone", "user")], at + 1
    if (s.has(at, "zone_prep") or s.text(at) == "in the") and _is_clock(s, at - 1):
        for size in (1, 2, 3, 4):
            if s.has(at + 1 + size, "time_word"):
                words = s.items[at + 1 : at + 1 + size]
                said = "".join(("" if w.glued else " ") + w.text for w in words).strip()
                return [("zone", said)], at + size + 2
    place = s.skip(at, "in", "zone_prep")
    if s.has(place, "time_word") and s.has(place + 1, "zone_prep"):
        return _zone_words(s, place + 2, place + 2, named=True)
    return _zone_words(s, at, place, named=False)


def _zone_words(s: Stream, at: int, place: int, *, named: bool) -> Reading | None:
    sizes = (9, 7, 5, 4, 3, 2, 1) if s.text(place + 1) == "/" else (4, 3, 2, 1)
    for size in sizes:
        end = place + size
        if end > len(s.items):
            continue
        words = s.items[place:end]
        if any(each.shape not in ("word", "han", "number", "mark", "clock") for each in words):
            continue
        said = "".join(("" if w.glued or w.shape == "han" else " ") + w.text for w in words).strip()
        zone = find_zone_name(said)
        owned = s.skip(end, "of")
        end = owned if s.has(owned, "time_word") else end
        if zone is not None and (named or _is_zone(s, at, place, end)):
            return [("zone", said)], s.skip(end, "time_word")
    # A name that is no zone, before "time" and behind a clock, or in front of nothing else.
    if not named and _is_clock(s, at - 1) and s.is_plain(at):
        for size in (1, 2, 3):
            if s.has(at + size, "time_word") and all(_may_name(s, at + n) for n in range(size)):
                return [("zone", " ".join(s.text(at + n) for n in range(size)))], at + size + 1
    return None


def _may_name(s: Stream, at: int) -> bool:
    return s.is_plain(at) and not s.has(at, "lead", "generic", "time_noun")


def _is_zone(s: Stream, at: int, place: int, end: int) -> bool:
    if s.has(end, "time_word") or s.text(place + 1) == "/":
        return True
    if s.text(place) == "utc" and s.has(place - 1, "comma"):
        return True
    if place > at and s.has(at - 1, "relday", "weekday") and not s.is_plain(end):
        return len(s.text(place)) > 3
    if not _is_clock(s, at - 2 if s.text(at - 1) == "(" else at - 1):
        return False
    if s.text(place) == "us" and place + 1 < end:
        return True  # "8am US Eastern"
    if s.pack.name == "en" and s.has(end, "comma") and len(s.text(place)) > 3:
        return True  # "10:00 Dubai: call Omar"
    if s.pack.name != "en" and place == at:
        return s.text(place) in ("utc", "gmt")  # "la", "et" and "reunión" are words, not zones
    if s.text(place) in ("eastern", "pacific", "central", "mountain"):
        return not s.is_plain(end)
    if place > at:
        return len(s.text(place)) > 3 or end > place + 1  # "at 9am in London"
    return s.text(place) in ZONE_CODES and (len(s.text(place)) > 2 or s.pack.name == "en")


def _is_clock(s: Stream, at: int) -> bool:
    return s.has(at, "num", "clock", "ampm", "oclock", "part")


def read_trouble(s: Stream, at: int) -> Reading | None:
    """Words that name a time which nobody can work out."""
    if _is_open_time(s, at):
        return [("trouble", "vague_time")], at + 2
    if s.text(at) == "start" and not s.has(at + 1, "at"):
        return None  # "start the carnival playlist"
    some = _some_of(s, at) or _middle_of(s, at)
    if some is not None:
        return some
    place = s.skip(at, *_BEFORE_TROUBLE)
    code = s.word(place, "trouble")
    if code is None or place - at > 6:
        return None
    if place > at and code.startswith("vague") and not s.has(at, "at", "in", "every"):
        return None
    return [("trouble", code)], place + 1


def _middle_of(s: Stream, at: int) -> Reading | None:
    """ "mid-July", "in the middle of next week": no day of it is named."""
    place = s.skip(at, "in", "det", "on", "at")
    if not s.has(place, "vague_part"):
        return None
    place = place + 2 if s.text(place + 1) == "-" else s.skip(place + 1, "in", "of", "on")
    if s.has(place, "month") and not s.has(place + 1, "num", "ord"):
        return [("trouble", "no_day")], place + 1
    found = period_at(s, place)
    return None if found is None else ([("trouble", "no_day")], found[2])


def _some_of(s: Stream, at: int) -> Reading | None:
    """ "on some Fridays", "most days", "one of these weekends": which ones nobody can say."""
    place = s.skip(at, "on", "in", "at")
    named = s.has(place, "vague_det") or (
        s.has(place, "few") and s.has(place + 1, "plural", "parts")
    )
    if not named or not s.has(place + 1, "plural", "parts", "weekday", "part", "daygroup", "unit"):
        return None
    if s.word(place + 1, "unit") in ("second", "minute", "hour", "year"):
        return None
    return [("trouble", "vague_recurrence")], place + 2


def _is_open_time(s: Stream, at: int) -> bool:
    """ "before noon", "after 5pm": a time that is only bounded on one side."""
    if not s.has(at, "before", "after") or s.has(at - 1, "num", "unit", "quarter", "half", "one"):
        return False
    return read_item(s, at + 1, bare=True) is not None
