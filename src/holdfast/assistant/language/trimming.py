"""Takes out of a request about a task what says nothing about its change.

Old values that a new one takes the place of ("at 8, not 7", "from 8:30 to 9:15"), and clauses that
only give a reason ("…, I'm on leave").
"""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.clock_phrases import read_item
from holdfast.assistant.language.scanning import scan
from holdfast.assistant.language.sentences import Sentence
from holdfast.assistant.language.stream import Stream

_CUES: Final = (
    "op", "op_split", "op_mid", "instead", "hold_words", "back_on", "channel", "all_channels",
    "enough", "called",
)  # fmt: skip
_TIMES: Final = (
    "num", "clock", "weekday", "plural", "every", "freq", "ord", "relday", "daypart", "part",
    "month", "date", "daygroup", "half",
)  # fmt: skip
_STOPS: Final = frozenset(",;:.!?-()，。；！？、।")


def without_old_values(sentence: Sentence) -> Sentence:
    """The request without the values that it gives up, if it says others."""
    s = sentence.stream
    left = set(range(len(s.items)))
    for at in range(len(s.items)):
        if s.has(at, "same"):
            left -= {at} | ({at + 1} if s.text(at + 1) == "but" else set())
        given_up = (_refused(s, at), _moved_from(s, at), _too_much(s, at), _replaced(s, at))
        for first, end in given_up:
            if end > first and _has_time(s, left - set(range(first, end))):
                left -= set(range(first, end))
    return _kept(sentence, left)


def without_asides(sentence: Sentence, named: frozenset[int]) -> Sentence:
    """The request without the clauses that give a reason; itself if nothing would be left."""
    s = sentence.stream
    clauses = _clauses(s)
    asides = [each for each in clauses if _is_aside(s, each, named)]
    if not asides or len(asides) == len(clauses):
        return sentence
    gone = {n for each in asides for n in each}
    if any(s.word(n, "op") == "pause" or s.has(n, "hold_words") for n in range(len(s.items))):
        ends = (p for p in scan(s) if p.kind in ("until", "length"))
        gone -= {n for p in ends for n in range(p.start, p.end)}  # "…, I'm away until Monday"
    return _kept(sentence, set(range(len(s.items))) - gone)


def _kept(sentence: Sentence, left: set[int]) -> Sentence:
    items = sentence.stream.items
    if len(left) == len(items):
        return sentence
    return Sentence(sentence.text, Stream([items[n] for n in sorted(left)], sentence.stream.pack))


def _refused(s: Stream, at: int) -> tuple[int, int]:
    """ "not 7", "rather than the 5th", "not just on weekdays"."""
    if not s.has(at, "not"):
        return at, at
    if s.has(at + 1, "every") and s.has(at + 2, "other"):
        return at, at + 4 if s.has(at + 3, "one_word", "unit") else at + 3  # "not every other one"
    place = s.skip(at + 1, "det", "on")
    if s.has(place, "past_ref") and s.has(place + 1, "weekday", "unit"):
        return at, place + 2  # "rather than the last Thursday"
    return at, _time_end(s, at + 1)


def _replaced(s: Stream, at: int) -> tuple[int, int]:
    """ "8 बजे की बजाय 9 बजे": the old value stands before what gives it up."""
    if s.pack.name != "hi" or not s.has(at, "instead"):
        return at, at
    for first in range(max(0, at - 4), at):
        if _time_end(s, first) == at:
            return first, at
    return at, at


def _moved_from(s: Stream, at: int) -> tuple[int, int]:
    """ "from 8:30" in "from 8:30 to 9:15", behind what is moved."""
    if not s.has(at, "from") or s.has(at - 1, "op_mid", "comma", "every") or at == 0:
        return at, at
    end = _time_end(s, at + 1, range_end=True)
    return (at, end) if end > at and s.has(end, "range", "clock_to") else (at, at)


def _too_much(s: Stream, at: int) -> tuple[int, int]:
    """ "8:30 is too early"."""
    if not s.has(at, "num", "clock", "weekday", "plural", "half", "quarter", "ord", "part"):
        return at, at
    end = _time_end(s, at)
    return (at, end + 1) if end > at and s.has(end, "too_much") else (at, at)


def _time_end(s: Stream, at: int, *, range_end: bool = False) -> int:
    """The place behind the time that begins here after small words, 0 if none does."""
    stop = next((n for n in range(at, len(s.items)) if s.has(n, "comma")), len(s.items))
    if range_end:
        stop = next((n for n in range(at + 1, stop) if s.has(n, "range", "clock_to")), stop)
    for first in range(at, min(at + 4, stop)):
        part = Stream(s.items[first:stop], s.pack)
        end = _read_end(part)
        if end:
            return first + end
        if not s.has(first, "only", "filler", "at", "on", "det", "from"):
            return 0
    return 0


def _read_end(part: Stream) -> int:
    if part.has(0, "num", "clock", "half", "quarter", "part"):
        item = read_item(part, 0, bare=True)
        if item is not None and not part.has(item[1], "unit"):
            return item[1]
    found = [p for p in scan(part) if p.start == 0 and p.kind != "past"]
    return max((p.end for p in found), default=0)


def _has_time(s: Stream, places: set[int]) -> bool:
    return any(s.has(n, *_TIMES) for n in places)


def _clauses(s: Stream) -> list[range]:
    """Stretches between commas, full stops, dashes and words such as "because"."""
    found: list[range] = []
    start = 0
    for at, item in enumerate(s.items):
        ends = item.text in _STOPS
        if ends or (s.has(at, "reason") and at > start):
            found.append(range(start, at + 1 if ends else at))
            start = at + 1 if ends else at
    found.append(range(start, len(s.items)))
    return [each for each in found if any(s.items[n].shape != "mark" for n in each)]


def _behind(s: Stream, clause: range) -> range:
    return range(clause.stop, len(s.items))


def _is_aside(s: Stream, clause: range, named: frozenset[int]) -> bool:
    """Whether a clause gives a reason, or is small talk."""
    first = next(n for n in clause if s.items[n].shape != "mark")
    if s.word(first, "lead") in ("keep", "remind"):
        return False
    while first in clause and s.has(first, "lead", "filler", "chat") and not s.has(first, "aside"):
        first += 1
    if first not in clause:
        return not any(s.has(n, *_CUES) for n in clause)
    if s.has(first, "aside"):
        if s.pack.name == "en" and any(s.has(n, "pronoun") for n in _behind(s, clause)):
            return True  # "I can't call Bob on Monday, do it on Tuesday"
        kinds = ("all", "points_at", "channel", "task_noun")
        return not any(n in named or s.has(n, *kinds) for n in clause if n > first)
    if any(n in named for n in clause) and not s.has(first, "op", "op_split"):
        behind = max(n for n in clause if n in named) + 1
        says_is = any(s.has(n, "says_is") for n in (behind, behind + 1))
        return says_is and not any(s.has(n, *_CUES) for n in clause if n not in named)
    return all(s.has(n, "chat", "filler") or s.items[n].shape == "mark" for n in clause)
