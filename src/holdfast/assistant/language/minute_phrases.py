"""Minutes past every hour: "on the hour", "at 10 past", "every hour at quarter to"."""

from __future__ import annotations

from holdfast.assistant.language.lexicon import Value
from holdfast.assistant.language.stream import Reading, Stream
from holdfast.assistant.slots import Amount


def read_minutes(s: Stream, at: int) -> Reading | None:
    """Minutes past every hour: "on the hour", "at 10 past", "at :15 and :45", "at minute 5"."""
    if s.has(at, "on_the_hour"):
        known: list[tuple[str, Value]] = [("minutes", (s.number(at, "on_the_hour") or 0,))]
        if {"every", "each"} & set(s.text(at).split()) and not s.has(at - 1, "sub", "unit"):
            known.append(("sub", Amount(number=1, unit="hour")))
        return known, at + 1
    place = s.skip(at, "at")
    found: list[int] = []
    end = place
    while len(found) < 12:
        one = _minute(s, end if not found else s.skip(end, "and", "comma"), first=not found)
        if one is None:
            break
        found.append(one[0])
        end = one[1]
    if not found:
        return None
    hourly = s.word(end - 1, "unit") == "hour" and (
        s.has(end - 2, "every") or not any(s.has(n, "every", "freq") for n in range(len(s.items)))
    )
    step: list[tuple[str, Value]] = [("sub", Amount(number=1, unit="hour"))] if hourly else []
    return [("minutes", tuple(found)), *step], end


def _minute(s: Stream, at: int, *, first: bool) -> tuple[int, int] | None:
    at = s.skip(at, "at") if not first else at
    if (listed := _listed_minute(s, at)) is not None:
        return listed
    if s.text(at) == ":" and s.has(at + 1, "num") and s.items[at + 1].glued:
        return s.number(at + 1) or 0, at + 2
    if s.word(at, "unit") == "minute" and s.has(at + 1, "num"):
        return s.number(at + 1) or 0, at + 2
    place = s.skip(at, "one")
    value = 30 if s.has(place, "half") else s.number(place, "quarter") or s.number(place)
    if value is None or value > 59:
        return None
    place += 1
    if s.word(place, "unit") == "minute":
        place += 1
    hour = s.skip(place + 1, "det", "every")
    named = s.word(hour, "unit") == "hour"
    if s.has(place, "past") and not s.has(s.skip(place + 1, "det"), "num", "part"):
        return value, hour + 1 if named else place + 1
    if s.has(place, "clock_to") and named and hour > place + 1 and value:
        return 60 - value, hour + 1
    if s.has(place, "clock_to") and _of_each_hour(s, at) and value:
        return 60 - value, place + 1
    return None


def _of_each_hour(s: Stream, at: int) -> bool:
    """ "every hour at quarter to": the hour was named before."""
    return s.has(at - 1, "at") and s.word(at - 2, "unit") == "hour" and s.has(at - 3, "every")


def _listed_minute(s: Stream, at: int) -> tuple[int, int] | None:
    """The first of "5, 25 and 45 minutes past the hour", of which only the last says so."""
    place = at
    for _ in range(12):
        if not s.has(place, "num", "quarter", "half"):
            return None
        end = s.skip(place + 1, "and", "comma", "at")
        if end == place + 1:
            break
        place = end
    if place == at or _minute(s, place, first=False) is None:
        return None
    value = s.number(at)
    return None if value is None or value > 59 else (value, at + 1)
