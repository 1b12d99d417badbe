"""Finds the phrases of time in a sentence, and groups neighbours into clusters.

A cluster is what is said in one breath: "every weekday at 9:30 until June". A sentence may have
several, of which only some say when the task runs; `choosing.py` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.assistant.language.bound_phrases import (
    read_except,
    read_length,
    read_offset,
    read_shift,
    read_start,
    read_timer,
    read_trouble,
    read_until,
    read_zone,
)
from holdfast.assistant.language.clock_phrases import (
    read_fields,
    read_part_of,
    read_times,
    read_window,
)
from holdfast.assistant.language.day_phrases import read_day_phrase
from holdfast.assistant.language.frequency_phrases import (
    read_alternate,
    read_frequency,
    read_parts,
    read_position,
)
from holdfast.assistant.language.minute_phrases import read_minutes
from holdfast.assistant.language.recurrence_phrases import (
    read_edges,
    read_every,
    read_monthdays,
    read_months,
    read_nths,
    read_weekdays,
)
from holdfast.assistant.language.stream import Phrase, Reading, Stream
from holdfast.assistant.slots import Clock, Day

READERS: Final[tuple[Callable[[Stream, int], Reading | None], ...]] = (
    read_except,
    read_offset,
    read_timer,
    read_length,
    read_window,
    read_start,
    read_until,
    read_every,
    read_frequency,
    read_fields,
    read_position,
    read_alternate,
    read_edges,
    read_monthdays,
    read_nths,
    read_weekdays,
    read_parts,
    read_minutes,
    read_day_phrase,
    read_shift,
    read_part_of,
    read_times,
    read_months,
    read_zone,
    read_trouble,
)
_GLUE: Final = ("glue", "and", "comma", "on", "at", "or", "by_day")
_GLUE_MARKS: Final = ("-", "(", ")", ".")
_MARKS: Final = (
    "on", "at", "every", "by_day", "before", "after", "until", "start", "from", "part_prep", "in",
)  # fmt: skip
_TELLERS: Final = frozenset({
    "i", "we", "you", "he", "she", "they", "that", "which", "who", "what", "how",
})  # fmt: skip
_COMPARED: Final = ("with", "than", "from", "since", "of", "and")


@dataclass(frozen=True)
class Cluster:
    """Neighbouring phrases; `front` has nothing but an opening before it, `last` nothing behind."""

    phrases: tuple[Phrase, ...]
    front: bool
    last: bool

    @property
    def start(self) -> int:
        """Its first lexeme."""
        return self.phrases[0].start

    @property
    def end(self) -> int:
        """The place behind its last lexeme."""
        return self.phrases[-1].end

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its phrases."""
        return frozenset(each.kind for each in self.phrases)

    @property
    def is_weak(self) -> bool:
        """Whether everything in it may as well belong to the purpose."""
        return all(each.weak for each in self.phrases)


def scan(s: Stream) -> list[Phrase]:
    """All phrases of time, left to right, the longest one at each place."""
    found: list[Phrase] = []
    at = 0
    while at < len(s.items):
        best = _longest(s, at)
        if best is None:
            at += 1
            continue
        values, end = best
        kept = [p for p in (_phrase(s, k, v, at, end, found) for k, v in values) if p is not None]
        found += kept
        at = end if end > at else at + 1
    return found


def _longest(s: Stream, at: int) -> Reading | None:
    if not s.items[at].kinds:
        if (
            s.has(at - 1, "num", "clock", "ampm", "oclock", "part")
            or any(s.has(at + n, "time_word") for n in (1, 2, 3))
            or s.text(at + 1) == "/"
            or s.text(at) == "utc"
        ):
            return read_zone(s, at)
        return _past(s, at) or _personal_date(s, at)
    best: Reading | None = _past(s, at) or _personal_date(s, at)
    for reader in READERS:
        one = reader(s, at)
        if one is not None and (best is None or one[1] > best[1]):
            best = one
    return best


def _past(s: Stream, at: int) -> Reading | None:
    """ "the past 30 days", "last week": a time behind us, said of the purpose."""
    if not s.has(at, "past_ref"):
        return None
    place = s.skip(at + 1, "num", "few", "couple", "of", "counter")
    if s.has(place, "unit", "weekday", "month", "part", "daygroup"):
        return [("past", None)], place + 1
    return None


def _day_of_event(s: Stream, at: int) -> Reading | None:
    """ "on the day of my next checkup", "the night before the exam": a day of something else."""
    place = s.skip(at, "on", "at", "part_prep", "det", "by_day")
    if place == at or not s.has(place, "unit", "part"):
        return None
    if s.word(place, "unit") in ("second", "minute", "hour"):
        return None
    if not s.has(place + 1, "of", "before", "after", "owner"):
        return None
    owning = ("det", "one", "next", "this", "owner")
    behind = s.skip(place + 1, "of", "before", "after", *owning)
    known = s.has(behind - 1, *owning) and s.is_plain(behind)
    if not known or (s.has(at, "det") and at > _opening_end(s) and not _is_last(s, behind + 1)):
        return None
    return [("trouble", "unknown_date")], behind + 1


def _personal_date(s: Stream, at: int) -> Reading | None:
    """ "on his birthday": a date that nobody here knows."""
    event = _day_of_event(s, at)
    if event is not None:
        return event
    if not s.has(at, "on", "by_day", "before", "every", "birthday_prep"):
        return None
    for place in range(at + 1, min(at + 5, len(s.items))):
        if s.has(place, "birthday"):
            return [("trouble", "unknown_date")], place + 1
        if s.has(place, "comma", "on", "at", "about", "weekday", "relday", "month", "num", "lead"):
            return None
    return None


def _phrase(
    s: Stream, kind: str, value: object, at: int, end: int, before: list[Phrase]
) -> Phrase | None:
    if value in ("sun", "moon", "feast") and _is_pictured(s, at):
        return None
    if kind == "day" and _is_told(s, value, at):
        return None
    adjacent = bool(before) and _joined(s, before[-1].end, at)
    marked = s.has(at, *_MARKS) or (kind == "trouble" and _is_introduced(s, at, value))
    shifted = bool(before) and before[-1].kind == "shift" and before[-1].end == at
    if kind == "times" and before and before[-1].kind == "times" and _parts_only(value):
        return None  # "um 17:30 Uhr Feierabend melden"
    if (
        kind in ("every", "sub")
        and s.has(at, "freq")
        and s.pack.name in ("es", "fr")
        and s.is_plain(at - 1)
    ):
        return None  # "el resumen semanal"
    if not shifted and _is_adjective(s, kind, value, at, end, adjacent=adjacent):
        return None
    weak = s.has(at - 1, "weak_prep") and kind not in ("offset", "trouble") and not adjacent
    setting = s.word(at - 2, "lead") == "remind" or any(s.has(n, "set_lead") for n in range(3))
    if s.has(at - 1, "for") and setting:
        weak = False
    if kind == "trouble" and not marked:
        weak = weak or not (adjacent or s.has(at - 1, *_MARKS) or str(value).startswith("vague"))
        weak = weak and not (value == "bimonthly" and _is_last(s, end))
    return Phrase(kind, value, at, end, weak, marked)


def _is_pictured(s: Stream, at: int) -> bool:
    """ "photograph the sunset at 8pm": the object of a verb, and no time."""
    return s.pack.name == "en" and s.is_plain(at - 1) and not s.has(at, *_MARKS)


def _is_told(s: Stream, value: object, at: int) -> bool:
    """ "the file I sent yesterday", "compare it with yesterday": a day that was, in the purpose."""
    if s.pack.name != "en" or not isinstance(value, Day) or value.kind != "relative":
        return False
    if value.number >= 0 or s.has(at, *_MARKS):
        return False
    before = {s.text(n) for n in range(max(0, at - 5), at)}
    return s.text(at - 1) in _COMPARED or bool(before & _TELLERS)


def _is_introduced(s: Stream, at: int, value: object) -> bool:
    """ "in the summer", "the day before my exam": what needs no preposition to say when."""
    dated = value == "unknown_date" and (s.has(at, "det") or s.pack.name != "en")
    return (
        dated
        or s.has(at, "vague_part")
        or s.text(at).startswith(("in ", "over ", "during ", "every ", "each ", "this ", "next "))
    )


def _parts_only(value: object) -> bool:
    clocks = value if isinstance(value, tuple) else ()
    return all(isinstance(each, Clock) and each.hour is None for each in clocks)


def _is_adjective(
    s: Stream, kind: str, value: object, at: int, end: int, *, adjacent: bool
) -> bool:
    """ "the 2pm demo", "my weekly report", "the Friday meeting", "morning news"."""
    owned = s.has(at - 1, "det") or s.has(at, "det")
    if kind == "times":
        if _parts_only(value) and not s.has(at, "at", "part_prep", "parts"):
            if (adjacent and isinstance(value, tuple) and len(value) > 1) or _has_day(s, at, end):
                return False
            if adjacent and s.has(at, "part") and not (s.has(at - 1, "comma") and s.is_plain(end)):
                return False
            fixed = s.word(at, "part") in ("noon", "midnight", "end_of_day")
            return not (fixed and (at == 0 or _is_last(s, end)) and not s.has(at - 1, "det"))
        return owned and not s.has(at, "at") and s.is_plain(end)
    if kind in ("every", "sub") and s.has(at, "freq"):
        return s.has(at - 1, "det") and s.is_plain(end) and not adjacent
    if kind == "day" and isinstance(value, Day) and value.kind in ("weekday", "holiday"):
        return owned and not s.has(at, "on", "next", "this") and s.is_plain(end)
    if kind == "day" and isinstance(value, Day) and value.kind == "nth":
        return False
    if kind == "business":
        bare = s.text(at).startswith(("business", "office", "working"))
        return bare and not any(s.word(n, "unit") in ("minute", "hour") for n in range(at))
    if kind == "nths":
        return not s.has(at, "on") and not any(
            s.has(n, "every", "of", "freq") for n in range(len(s.items))
        )
    return False


def _has_day(s: Stream, at: int, end: int) -> bool:
    """ "end of day tomorrow", "noon on Friday": what fixes an hour, right before its day."""
    if s.word(at, "part") not in ("noon", "midnight", "end_of_day"):
        return False
    place = s.skip(end, "on", "this", "next", "of", "det")
    return s.has(place, "relday", "weekday", "month", "date", "ord")


def _joined(s: Stream, end: int, start: int) -> bool:
    """Whether only glue stands between two phrases."""
    if not 0 <= start - end <= 3:
        return False
    return all(s.has(n, *_GLUE) or s.text(n) in _GLUE_MARKS for n in range(end, start))


def clusters(s: Stream, phrases: list[Phrase]) -> list[Cluster]:
    """Neighbouring phrases together."""
    groups: list[list[Phrase]] = []
    for each in phrases:
        if groups and _continues(s, groups[-1], each):
            groups[-1].append(each)
        else:
            groups.append([each])
    opening = _opening_end(s)
    return [Cluster(tuple(g), g[0].start <= opening, _is_last(s, g[-1].end)) for g in groups]


def _continues(s: Stream, group: list[Phrase], each: Phrase) -> bool:
    if each.kind == "past" or group[-1].kind == "past":
        return False
    end = group[-1].end
    if all(p.weak for p in group) and not each.weak and each.kind in ("every", "sub", "weekdays"):
        return each.start < end  # "the weather for Saturday every Friday"
    if each.start <= end or _joined(s, end, each.start):
        return True
    if all(s.has(n, "glue") and s.has(n, "lead") for n in range(end, each.start)):
        return True  # "a monthly reminder on the 3rd"
    if each.marked and each.kind in ("times", "window", "minutes") and each.start - end <= 4:
        # The times of "every Monday remind me at 7:50".
        gap = range(end, each.start)
        if all(s.has(n, "lead", "comma") and s.word(n, "lead") != "to" for n in gap):
            return True
    # "15 minutes before the 2pm demo today": the name of what is at that time may stand between.
    if not any(p.kind == "shift" for p in group) or each.start - end > 3:
        return False
    return all(s.is_plain(n) for n in range(end, each.start))


def _opening_end(s: Stream) -> int:
    at = 0
    while at < len(s.items) and (
        s.has(at, "lead") or s.items[at].shape == "mark" or s.has(at, "comma")
    ):
        if s.word(at, "lead") == "to" and at == 0:
            break
        at += 1
    # "Set a reminder for tomorrow".
    return at + 1 if s.has(at, "for") and s.word(at - 1, "lead") == "remind" else at


def _is_last(s: Stream, at: int) -> bool:
    return all(
        s.has(n, "tail", "comma", "instead", "only") or s.items[n].shape == "mark"
        for n in range(at, len(s.items))
    )
