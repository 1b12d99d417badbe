"""Reads requests about tasks that exist: what is to be done, and what they leave unexplained.

A request is an update only if all of its words are accounted for: the operation, the words that
name a task, a time, and small words. "Cancel my gym membership" is no change of the task "Gym
reminder", because nobody can say what the membership is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from holdfast.assistant.language.amounts import read_amounts
from holdfast.assistant.language.clock_phrases import read_item
from holdfast.assistant.language.scanning import scan
from holdfast.assistant.language.stream import Phrase, Stream
from holdfast.assistant.slots import Day

_SMALL: Final = (
    "tail", "pronoun", "generic", "all", "filler", "op_now", "next_run", "instead", "only",
    "add_channel", "remove_channel", "det", "of", "comma", "and", "rename_noun", "task_noun",
    "hold_words", "back_on", "turn_off", "on", "one", "glue", "at", "not", "later_by", "number_and",
    "op_mid", "op", "op_split", "time_word", "no_more", "forward", "by_amount", "chat", "day_end",
    "counter", "date_det", "one_word", "enough", "again", "for_now", "for_good", "same", "small",
    "negative", "backward", "points_at", "too_much", "about", "that", "for", "start", "via", "in",
    "part_prep",
)  # fmt: skip
_CHANNELS: Final = ("channel", "other_channel", "all_channels")
_CHANGES: Final = (
    "op_mid", "instead", "hold_words", "back_on", "enough", "later_by", "next_run", "op_now",
    "negative", "called", "rename_noun", "one_word", "again", "only", "same", "too_much",
    "points_at", *_CHANNELS,
)  # fmt: skip
"""Words by which a request may be about a task although it has no verb."""
_VERB_LAST: Final = ("de", "hi", "zh")


@dataclass(frozen=True)
class UpdateWords:
    """The parts of a request that may be an update.

    `verb` is the place of the operation, None where only small words say that something changes;
    `leads` says that it opens the request. `names` are the words that are the name of a task.
    """

    operation: str | None
    verb: int | None
    leads: bool
    reminds: bool
    phrases: tuple[Phrase, ...]
    days: tuple[Day, ...]
    leftover: tuple[int, ...]
    has_pronoun: bool
    has_channels: bool


def may_be_update(s: Stream) -> bool:
    """Whether any word speaks of a task or of a change."""
    return any(s.has(n, "op", "op_split", *_CHANGES) for n in range(len(s.items)))


def read_update_words(s: Stream, named: frozenset[int]) -> UpdateWords:
    """The operation of a request and what surrounds it."""
    phrases = tuple(
        p for p in scan(s) if p.kind != "past" and not set(range(p.start, p.end)) & named
    )
    verb = _first_verb(s, named)
    leads = verb is not None
    if verb is None and not _reminds(s, named):
        timed = {n for p in phrases for n in range(p.start + 1, p.end)}  # "the end of the month"
        free = (n for n in range(len(s.items)) if n not in named and n not in timed)
        verb = next((n for n in free if _is_verb(s, n)), None)
    if s.pack.name == "fr" and verb is not None and _said(s, verb) == "reschedule":
        phrases = tuple(_as_time(s, each) for each in phrases)
    days, owned = _owned_days(s)
    read = {n for p in phrases for n in range(p.start, p.end)} | owned | named
    if not any(p.kind in ("times", "window", "offset") for p in phrases):
        read |= _bare_times(s)
    if verb is not None and s.has(verb, "op_shift", "defers"):
        read |= _amount_places(s)
    small = _SMALL if phrases else (*_SMALL, *_CHANNELS)
    leftover = tuple(n for n in range(len(s.items)) if n not in read and not _is_small(s, n, small))
    return UpdateWords(
        operation=None if verb is None else _said(s, verb),
        verb=verb,
        leads=leads,
        reminds=_reminds(s, named),
        phrases=phrases,
        days=days,
        leftover=leftover,
        has_pronoun=any(s.has(n, "pronoun") and n not in named for n in range(len(s.items))),
        has_channels=any(s.has(n, *_CHANNELS) for n in _free(s, named, verb)),
    )


def _as_time(s: Stream, phrase: Phrase) -> Phrase:
    """ "change-la pour 8h": a time where the new one is said, and no length."""
    if phrase.kind != "length" or s.text(phrase.start) != "pour":
        return phrase
    item = read_item(s, phrase.start + 1, bare=True)
    if item is None or item[1] < phrase.end:
        return phrase
    return replace(phrase, kind="times", value=(item[0],), end=item[1])


def _free(s: Stream, named: frozenset[int], verb: int | None) -> list[int]:
    """Places outside the name of a task; verbs such as "push" are no channels."""
    pushing = verb if verb is not None and s.text(verb) == "push" else None
    return [n for n in range(len(s.items)) if n not in named and n != pushing]


def _first_verb(s: Stream, named: frozenset[int]) -> int | None:
    """The first word that is neither an opening nor small, if it is an operation.

    Verbs may also stand last, behind the task and its time, as in German or Hindi.
    """
    for at in range(len(s.items)):
        if at in named and s.pack.name not in _VERB_LAST:
            return None
        if at not in named and _said(s, at) is not None and not _is_channel(s, at):
            return at
        lead = s.word(at, "lead")
        if lead in ("remind", "keep") and at not in named:
            return None
        if s.pack.name in _VERB_LAST and _before_verb(s, at, named):
            continue
        if lead is None and not s.has(at, "filler", "comma") and s.items[at].shape != "mark":
            return None
    return None


def _is_verb(s: Stream, at: int) -> bool:
    return _said(s, at) is not None and not _is_channel(s, at)


def _is_channel(s: Stream, at: int) -> bool:
    """Whether "push" or "mail" is the channel here: "by push", "no mail"."""
    before = ("via", "by_amount", "by_day", "add_channel", "remove_channel", "only", "and")
    return s.has(at, "channel") and at > 0 and s.has(at - 1, *before)


def _reminds(s: Stream, named: frozenset[int]) -> bool:
    """Whether it asks for something new: "remind me to …", "once a year, remind me …"."""
    return any(
        s.word(n, "lead") == "remind"
        and n not in named
        and not s.has(n, "task_noun", "generic", "op")
        for n in range(len(s.items))
    )


def _said(s: Stream, at: int) -> str | None:
    """The operation of a verb, by its second part where it has one: "setze … fort"."""
    endings = s.get(at, "op_split")
    if isinstance(endings, Mapping):
        for place in range(len(s.items) - 1, at, -1):
            if s.text(place) in endings and not _opens_time(s, place):
                return str(endings[s.text(place)])
    return s.word(at, "op")


def _opens_time(s: Stream, at: int) -> bool:
    """Whether "on" is that of "on Monday"."""
    return s.has(at, "on") and s.has(at + 1, "weekday", "plural", "ord", "num", "month", "daygroup")


def _before_verb(s: Stream, at: int, named: frozenset[int]) -> bool:
    small = ("pronoun", "generic", "task_noun", "all", "filler", "op_now", "next_run", "only")
    return at in named or not s.is_plain(at) or s.has(at, *small)


def _bare_times(s: Stream) -> set[int]:
    """Numbers that may be times because something is changed to them."""
    found: set[int] = set()
    for at in range(len(s.items)):
        amounts = read_amounts(s, at)
        if amounts is not None:
            found |= set(range(at, amounts[1]))
        if s.has(at, "num", "clock", "half", "quarter", "part") and not s.has(at, "one_word"):
            item = read_item(s, at, bare=True)
            found |= set(range(at, item[1])) if item is not None else set()
    return found


def _amount_places(s: Stream) -> set[int]:
    """Amounts by which something is moved."""
    found: set[int] = set()
    for at in range(len(s.items)):
        amounts = read_amounts(s, at)
        found |= set(range(at, amounts[1])) if amounts is not None else set()
    return found


def _is_small(s: Stream, at: int, small: tuple[str, ...]) -> bool:
    item = s.items[at]
    if item.shape == "mark" or s.word(at, "lead") == "drop" or s.word(at, "lead") == "to":
        return True
    return s.has(at, *small)


def _owned_days(s: Stream) -> tuple[tuple[Day, ...], set[int]]:
    """ "tomorrow's", "Friday's": days that own the task which is left out."""
    days: list[Day] = []
    owned: set[int] = set()
    for at, item in enumerate(s.items):
        base = item.text.removesuffix("'s")
        if base == item.text:
            continue
        kinds = s.pack.phrases.get(base, {}).get((base,), {})
        day: Day | None = None
        if isinstance(number := kinds.get("relday"), int):
            day = Day(kind="relative", number=number)
        elif isinstance(part := kinds.get("daypart"), tuple):
            day = Day(kind="relative", number=part[0])
        elif isinstance(weekday := kinds.get("weekday"), int):
            day = Day(kind="weekday", weekday=weekday)
        elif isinstance(month := kinds.get("month"), int):
            day = Day(kind="unclear", unit="month", month=month)
        if day is not None:
            days.append(day)
            owned.add(at)
    return tuple(days), owned
