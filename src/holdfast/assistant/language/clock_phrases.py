"""Times of day in a sentence: "9:30", "half past nine", "um halb acht", "下午5点", "at noon".

A bare number is a time only where something says so: "at", a part of the day, or a list of times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from holdfast.assistant.language.stream import Reading, Stream
from holdfast.assistant.language.terse_times import is_dashed, is_terse
from holdfast.assistant.slots import Clock, Half, Part, Window

_Clock = tuple[Clock, int]
_COUNTING = ("numbered", "month", "of", "and", "comma", "det", "one", "about")


def read_clock(s: Stream, at: int, *, bare: bool) -> _Clock | None:
    """One time of day without its part of the day."""
    found = _spoken(s, at) or _shaped(s, at, bare=bare) or _numbered(s, at, bare=bare)
    if found is None:
        return None
    clock, end = found
    if not clock.written and s.pack.written_hours:
        clock = replace(clock, written=True)
    half = s.word(end, "ampm")
    if half is not None and clock.half is None:
        return replace(clock, half=cast("Half", half), written=False), end + 1
    return clock, end


def _spoken(s: Stream, at: int) -> _Clock | None:
    """Halves, quarters and minutes before or after an hour."""
    if s.has(at, "half"):
        if s.has(at + 1, "past"):
            return _around(s, at + 2, 30)
        hour = s.number(at + 1)
        if hour is not None and hour <= 12 and not s.has(at + 2, "unit", "of"):
            return _around(s, at + 1, -30 if s.pack.half_before else 30)
        return None
    if s.has(at, "short_of"):  # "差一刻七点"
        less = s.number(at + 1, "quarter") or s.number(at + 1)
        return None if less is None else _around(s, s.skip(at + 2, "minute_mark"), -less)
    modified = s.number(at, "hour_mod")
    if modified is not None:
        return _around(s, at + 1, modified)
    place = s.skip(at, "one")
    minutes = s.number(place, "quarter") if s.has(place, "quarter") else s.number(place)
    if minutes is None or minutes > 59:
        return None
    place += 1
    if s.word(place, "unit") == "minute":
        place += 1
    if s.has(place, "past"):
        return _around(s, place + 1, minutes)
    if s.has(place, "clock_to") and not s.has(at - 1, "from", "between"):
        if minutes not in (5, 10, 15, 20, 25) and not s.has(place - 1, "unit"):
            return None
        return _around(s, place + 1, -minutes)
    return None


def _around(s: Stream, at: int, minutes: int) -> _Clock | None:
    place = s.skip(at, "det")
    if s.pack.half_before and s.has(place, "half"):  # "fünf vor halb neun"
        halves = s.number(place + 1)
        if halves is None or halves > 12:
            return None
        return _around(s, place + 1, minutes - 30)
    hour = s.number(place)
    if hour is None and s.word(place, "part") in ("noon", "midnight"):
        hour = 12 if s.word(place, "part") == "noon" else 24
    if hour is None or hour > 24:
        return None
    end = place + 1
    if s.has(end, "oclock"):
        end += 1
    if minutes >= 0:
        return Clock(hour=hour, minute=minutes), end
    earlier = (hour - 1) % 24 if hour != 1 else 12
    return Clock(hour=earlier, minute=60 + minutes), end


def _shaped(s: Stream, at: int, *, bare: bool) -> _Clock | None:
    shape = s.get(at, "clock") or (s.get(at, "dot_time") if bare else None)
    if not isinstance(shape, tuple):
        return None
    hour, minute, second, written = shape
    end = at + 1
    if s.has(end, "oclock") or (s.word(end, "unit") == "hour" and not s.has(end, "time_word")):
        end += 1
    return Clock(hour=hour, minute=minute, second=second, written=written), end


def _numbered(s: Stream, at: int, *, bare: bool) -> _Clock | None:
    hour = s.number(at)
    if hour is None and s.text(at) == "una" and bare:
        hour = 1
    both = s.get(at, "onehalf")
    if isinstance(both, float) and s.has(at + 1, "oclock"):
        return Clock(hour=int(both), minute=30), at + 2
    if hour is None or (hour > 99 and not bare):
        return None
    end = at + 1
    if bare and (joined := _joined(s, at, hour)) is not None:
        return joined
    if hour > 99:
        return None
    if s.text(end) == "h" and s.items[end].glued and _is_pair(s, end + 1):
        return Clock(hour=hour, minute=s.number(end + 1) or 0, written=True), end + 2  # "17h30"
    zero = s.text(at).startswith("0") and len(s.text(at)) > 1
    zoned = s.has(end, "time_word") and s.has(end + 1, "zone_prep")  # "a las 9 hora de Tokio"
    named = bare and s.pack.written_hours and s.word(end, "unit") == "hour" and not zoned
    if s.has(end, "oclock") or named:  # "à 13 heures" is a time, "dans 13 heures" is none
        clock = Clock(hour=hour, written=zero)
        return _with_minutes(s, clock, end + 1)
    if s.has(end, "ampm"):
        return Clock(hour=hour), end
    if bare and zoned and hour <= 24:
        return Clock(hour=hour, written=zero), end
    return _bare(s, hour, end, zero=zero) if bare and hour <= 24 else None


def _is_pair(s: Stream, at: int) -> bool:
    return s.has(at, "num") and s.items[at].glued and len(s.text(at)) == 2


def _bare(s: Stream, hour: int, end: int, *, zero: bool) -> _Clock | None:
    """A number alone, unless what follows says that it counts something."""
    if s.has(end, "unit", "counter", "month", "times", "nth_ending") or s.text(end) in ("%", "$"):
        return None
    if s.has(end, "plus", "minus", "half_after"):
        found = _with_minutes(s, Clock(hour=hour, written=zero), end)
        if found[1] > end:
            return found
    if end < len(s.items) and s.items[end].glued and (s.has(end, "short_unit") or s.is_plain(end)):
        return None
    return Clock(hour=hour, written=zero), end


def _joined(s: Stream, at: int, hour: int) -> _Clock | None:
    """ "1730", "18h", "five thirty": a time without a mark between hour and minutes."""
    text = s.text(at)
    if len(text) == 4 and text.isdigit() and hour < 2400 and hour % 100 < 60:
        end = at + 2 if s.word(at + 1, "unit") == "hour" else at + 1
        return Clock(hour=hour // 100, minute=hour % 100, written=True), end
    paired = _is_pair(s, at + 2)
    if s.text(at + 1) == "h" and s.items[at + 1].glued and not (paired or s.has(at + 1, "oclock")):
        return Clock(hour=hour, written=True), at + 2
    if len(text) == 3 and s.has(at + 1, "ampm") and hour % 100 < 60:
        return Clock(hour=hour // 100, minute=hour % 100), at + 1  # "230pm"
    if s.text(at + 1) == "-" and s.items[at].shape == "word" and s.items[at + 1].glued:
        at += 1  # "two-thirty"
    minutes = s.number(at + 1)
    if minutes is None or not 10 <= minutes <= 59 or not 1 <= hour <= 12:
        return None
    spelled = s.items[at + 1].shape == "word" or s.has(at + 2, "ampm")
    if not spelled or s.has(at + 2, "unit", "times", "past"):
        return None
    if s.has(at + 2, "clock_to") and s.has(at + 3, "num") and not s.has(at - 1, "from", "between"):
        return None  # "at one, thirty to two"
    return Clock(hour=hour, minute=minutes), at + 2


def _with_minutes(s: Stream, clock: Clock, at: int) -> _Clock:
    """What follows the hour: "8 heures 30", "15点半", "las 8 y media", "9 menos cuarto"."""
    sign, place = 1, at
    if s.has(at, "half_after"):
        return replace(clock, minute=30), at + 1
    if s.has(place, "plus") or s.has(place, "minus"):
        sign = -1 if s.has(place, "minus") else 1
        place = s.skip(place + 1, "det")
    joined = place > at
    minutes = 30 if s.has(place, "half") else s.number(place, "quarter")
    if minutes is None:
        minutes = s.number(place)
        if minutes is not None and not (joined or _is_minutes(s, place)):
            minutes = None
        if joined and s.has(at - 2, "comma") and s.has(at - 3, "num", "oclock", "clock"):
            minutes = None  # "a las 8, 14 y 20"
        if s.has(place + 1, "oclock", "ampm", "month", "date_mark", "month_mark"):
            minutes = None  # "entre 9h et 11h", "10 बजे 28 फरवरी"
        if joined and s.word(place + 1, "unit") == "hour":
            minutes = None
    if minutes is None or minutes > 99:
        return clock, at
    end = place + 1
    if s.word(end, "unit") == "minute" or s.has(end, "minute_mark"):
        end += 1
    assert clock.hour is not None
    if sign < 0:
        earlier = (clock.hour - 1) % 24 if clock.hour != 1 or clock.written else 12
        return replace(clock, hour=earlier, minute=60 - minutes), end
    return replace(clock, minute=minutes), end


def _is_minutes(s: Stream, at: int) -> bool:
    if s.word(at + 1, "unit") == "minute" or s.has(at + 1, "minute_mark"):
        return True
    if s.has(at + 1, "month", "unit", "date_mark"):
        return False
    hour = s.has(at - 1, "oclock") or s.word(at - 1, "unit") == "hour"
    return hour and len(s.text(at)) == 2 and s.text(at).isdigit()


def read_item(s: Stream, at: int, *, bare: bool) -> _Clock | None:
    """A time of day with its part of the day, in either order, or the part alone."""
    place = s.skip(at, "at", "part_prep")
    said = place > at
    strict = s.skip(at, "at") > at
    part = s.word(place, "part") or (s.word(place, "meal") if strict else None)
    if (
        part is not None
        and s.has(place, "relday")
        and not said
        and not s.has(at - 1, "every", "relday")
    ):
        return None  # "morgen um 8", "mañana a las 8": tomorrow, not the morning
    if part is None and s.has(place, "det") and s.has(place + 1, "part") and s.has(at, "part_prep"):
        place += 1
        part = s.word(place, "part")
    if part is not None:
        return _part_first(s, place, cast("Part", part))
    if said and not strict:
        return None
    found = read_clock(s, place, bare=bare or strict or _says_half(s, place))
    if found is None:
        return None
    return _part_behind(s, *found)


def _says_half(s: Stream, at: int) -> bool:
    """ "8 in the evening", "8 tonight", but not "chapter 8 tonight"."""
    named = at - 2 if s.text(at - 1) == "." else at - 1
    if not s.has(at, "num") or s.has(named, "numbered"):
        return False
    if s.has(at + 1, "every", "relday", "weekday") and s.pack.name == "en":
        return s.has(at + 2, "part") and not s.has(at - 1, *_COUNTING)
    return s.has(at + 1, "daypart") or (s.has(at + 1, "part_prep") and s.has(at + 2, "part"))


def _part_first(s: Stream, place: int, part: Part) -> _Clock:
    if s.has(place + 1, "and"):
        return Clock(part=part), place + 1
    behind = s.skip(place + 1, "comma") if s.has(s.skip(place + 1, "comma"), "at") else place + 1
    behind = s.skip(behind, "at")
    if part in ("noon", "midnight", "end_of_day") and s.pack.name != "hi" and s.pack.name != "zh":
        behind = place + 1
        if part == "noon" and s.has(behind, "half_after"):
            return Clock(hour=12, minute=30, written=True), behind + 1
        if behind == s.skip(behind, "at") or part == "end_of_day":
            return Clock(part=part), behind
        behind = s.skip(behind, "at")
    if s.word(behind, "part") in ("midnight", "noon") and part in ("night", "afternoon"):
        hour = 12
        return Clock(hour=hour, part=part), behind + 1
    if s.has(behind, "one") and s.pack.name == "hi" and not s.has(behind + 1, "oclock"):
        return Clock(part=part), place + 1  # "रात को एक कहानी"
    found = read_clock(s, behind, bare=behind > place + 1 or s.pack.name in ("hi", "zh"))
    if found is None or (found[0].hour or 0) > 99:
        return Clock(part=part), place + 1
    return replace(found[0], part=part, written=False), found[1]


def _part_behind(s: Stream, clock: Clock, end: int) -> _Clock:
    place = s.skip(end, "part_prep")
    if s.has(place, "det") and place > end:
        place += 1
    part = s.word(place, "part")
    twice = s.pack.name == "en" and s.has(place + 1, "and") and s.has(place + 2, "part")
    if part is None or (place == end and not twice and not s.has(place, "part_after")):
        return clock, end
    if part in ("noon", "midnight", "end_of_day"):
        return clock, end
    # Written hours stay as they are only where no part of the day was named.
    return replace(clock, part=cast("Part", part), written=False), place + 1


def read_part_of(s: Stream, at: int) -> Reading | None:
    """ "on the evening of …": the part of a day that is named behind it."""
    place = s.skip(at, "on", "in", "part_prep", "det")
    part = s.word(place, "part")
    if part is None or place == at or not s.has(place + 1, "of"):
        return None
    day = s.skip(place + 2, "det", "every")
    if not s.has(day, "ord", "num", "weekday", "month", "date", "relday", "last", "holiday"):
        return None
    return [("part", part)], place + 2


def read_times(s: Stream, at: int) -> Reading | None:
    """A list of times: "at 9, 13 and 17", "at 9am and in the evening"."""
    marked = s.has(at, "at")
    first = read_item(s, at, bare=is_dashed(s, at) or is_terse(s, at))
    if first is None:
        return None
    window = _range(s, *first)
    if window is not None:
        return [("window", window[0])], window[1]
    clocks, end = [first[0]], first[1]
    while len(clocks) < 24:
        place = s.skip(end, "and", "comma", "or", "slash")
        if place == end:
            break
        comma = s.has(place - 1, "comma")
        again = _same_hour(s, clocks[-1], place)
        if again is not None:
            clocks.append(again)
            end = place + 1
            continue
        following = read_item(s, place, bare=marked and _may_be_bare(s, place, comma=comma))
        listed = first[0].hour is None and s.has(at - 1, "every")  # "every morning and evening"
        if following is None or (not listed and _starts_else(s, place, following[1])):
            break
        clocks.append(following[0])
        end = following[1]
    return [("times", tuple(clocks))], end


def _same_hour(s: Stream, clock: Clock, at: int) -> Clock | None:
    """ "8 in the morning and evening", "8 am and pm": one hour in both halves of the day."""
    if clock.hour is None:
        return None
    half = s.word(at, "ampm")
    if clock.half is not None and half is not None and half != clock.half:
        return replace(clock, half=cast("Half", half))
    part = s.word(at, "part")
    if s.pack.name != "en" or s.has(at + 1, "at", "num", "clock", "half", "quarter"):
        return None
    if clock.part == "morning" and part in ("afternoon", "evening", "night"):
        return replace(clock, part=cast("Part", part))
    return None


def _may_be_bare(s: Stream, at: int, *, comma: bool) -> bool:
    """Whether a number in a list of times is one of them, and not the first word of the purpose."""
    if not comma:
        return True
    return s.has(at + 1, "and", "comma", "or") and s.has(
        s.skip(at + 1, "and", "comma", "or"), "num", "clock", "part"
    )


def _starts_else(s: Stream, start: int, end: int) -> bool:
    """A part of the day after "and" may begin another clause: "at 9 and evening walks"."""
    if s.word(start, "part") in ("noon", "midnight", "end_of_day") or s.has(start - 1, "at"):
        return False
    return (
        end == start + 1
        and s.has(start, "part")
        and not s.has(start, "part_after")
        and (s.is_plain(end))
    )


def _range(s: Stream, first: Clock, end: int) -> tuple[Window, int] | None:
    """The rest of "9 to 5" or "9am-5pm"."""
    if not s.has(end, "range"):
        return None
    last = read_item(s, end + 1, bare=True)
    if last is None or s.has(end + 1, "at"):
        return None
    return _window(s, first, last[0]), last[1]


def read_window(s: Stream, at: int) -> Reading | None:
    """ "from 9 to 5", "between 8:00 and 20:00", "during business hours"."""
    if s.has(at, "business_hours"):
        return [("business", None)], at + 1
    opened = s.has(at, "from") or s.has(at, "between")
    if not opened and not (s.has(at, "part") and s.pack.name in ("zh", "hi")):
        return None
    first = read_item(s, at + 1 if opened else at, bare=opened)
    if first is None:
        return None
    clock, end = first
    joint = "and" if s.has(at, "between") else "range"
    if not s.has(end, joint, "until") and not (s.has(at, "between") and s.has(end, "range")):
        return None
    last = read_item(s, end + 1, bare=True)
    if last is None:
        return None
    end = s.skip(last[1], "window_end")
    return [("window", _window(s, clock, last[0]))], end


def _window(s: Stream, first: Clock, last: Clock) -> Window:
    """The part of the day said once counts for both ends: "下午2点到3点"."""
    one, other = first.hour, last.hour
    said_once = first.part not in (None, "morning") and last.part is None
    if s.pack.written_hours and said_once and one is not None and other is not None:
        last = replace(last, part=first.part, written=False) if one % 12 < other < 12 else last
    return Window(start=first, end=last)


def read_fields(s: Stream, at: int) -> Reading | None:
    """ "at minutes 0 and 30 of hours 9 to 17", as schedules with many times are told in words."""
    place = s.skip(at, "at")
    if s.word(place, "unit") != "minute":
        return None
    minutes = _number_list(s, place + 1)
    if minutes is None or not s.has(minutes[1], "of"):
        return None
    behind = minutes[1] + 1
    if s.has(behind, "every") and s.word(behind + 1, "unit") == "hour":
        hours: tuple[list[int], int] | None = (list(range(24)), behind + 2)
    else:
        hours = _number_list(s, behind + 1) if s.word(behind, "unit") == "hour" else None
    if hours is None:
        return None
    clocks = [Clock(hour=h, minute=m, written=True) for h in hours[0] for m in minutes[0]]
    return [("times", tuple(clocks))], hours[1]


def _number_list(s: Stream, at: int) -> tuple[list[int], int] | None:
    """Numbers and ranges of them: "0, 9 to 12 and 20"."""
    found: list[int] = []
    end = at
    while len(found) < 60:
        place = s.skip(end, "comma", "and") if found else at
        first = s.number(place)
        if first is None or first > 59:
            break
        last = s.number(place + 2) if s.has(place + 1, "range") else None
        if last is not None and first <= last <= 59:
            found += range(first, last + 1)
            end = place + 3
        else:
            found.append(first)
            end = place + 1
    return (found, end) if found else None
