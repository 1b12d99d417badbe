"""Decides which clusters of time say when the task runs, and which belong to its purpose.

What opens the sentence counts most, then what recurs, then what ends it. Another cluster joins the
chosen one only where it adds what that one lacks: "tomorrow … at 5pm", "every Monday … until June".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.assistant.language.scanning import Cluster, clusters, scan
from holdfast.assistant.language.stream import Phrase, Stream
from holdfast.assistant.slots import Amount, Trouble

_DAYS: Final = frozenset({"day", "weekdays", "nths", "monthdays", "yearly", "every"})
_NAMED_DAYS: Final = _DAYS - {"every", "yearly"}
_TIMES: Final = frozenset({"times", "window", "part", "business"})
_STEPS: Final = frozenset({"sub", "minutes"})
_BOUNDS: Final = frozenset({
    "start", "until", "length", "count", "within", "months", "ntimes",
    "except_weekdays", "except_day", "except_months", "except_time", "except_range",
})  # fmt: skip
_RECURS: Final = frozenset({"every", "sub", "weekdays", "yearly", "ntimes"})


@dataclass(frozen=True)
class Choice:
    """The phrases that say when, in order; and what is wrong with the rest, if anything."""

    phrases: tuple[Phrase, ...]
    trouble: Trouble | None = None


def choose(s: Stream) -> Choice:
    """The phrases of a sentence that say when."""
    found = clusters(s, _without_durations(scan(s)))
    event = _event(s)
    candidates = [each for each in found if each.kinds - {"past", "zone"} or _past_alone(s, each)]
    if event is not None and not any(c.front and c.start < event for c in candidates):
        later = [c for c in candidates if not c.is_weak and "trouble" not in c.kinds]
        if _opens(s, event) or not later:
            return Choice((), "event")
    if not candidates:
        if any(s.has(n, "event_inside") for n in range(len(s.items))):
            return Choice((), "event")
        zones = [p for c in found if c.front and c.last and c.kinds == {"zone"} for p in c.phrases]
        return Choice(tuple(zones), None if zones else _unread(s, found))
    primary = max(candidates, key=lambda each: (_score(s, each), -each.start))
    if _score(s, primary) < 0:
        return Choice((), _bound_alone(candidates) or _unread(s, found))
    if _is_epithet(s, primary):
        own = [c for c in candidates if c is not primary and _says_how_often(c)]
        if own and _interval(primary) > 1:
            return Choice((), "contradiction")
        primary = max(own, key=lambda each: _score(s, each), default=primary)
    chosen = [primary]
    for each in found:
        if each is not primary and _adds(s, chosen, each):
            chosen.append(each)
    phrases = sorted((p for c in chosen for p in c.phrases), key=lambda p: (p.start, p.end))
    if _is_epithet(s, primary) and any(p.kind in ("times", "window") for p in phrases):
        phrases = [p for p in phrases if p.kind != "part"]  # "nightly build at 2am"
    return Choice(tuple(phrases), _beside(s, chosen))


def _without_durations(phrases: list[Phrase]) -> list[Phrase]:
    """ "read for 20 minutes every night": how long the work takes bounds no days."""
    if any(p.kind == "sub" for p in phrases):
        return phrases
    return [p for p in phrases if not (p.kind == "length" and _is_short(p.value))]


def _is_short(value: object) -> bool:
    return isinstance(value, Amount) and value.unit in ("second", "minute", "hour")


def _bound_alone(candidates: list[Cluster]) -> Trouble | None:
    """ "in August, …", "until Friday, …": a period or an end, but nothing that it bounds."""
    first = candidates[0]
    if not first.front or first.is_weak:
        return None
    return "no_day" if "months" in first.kinds else "vague_recurrence"


def _past_alone(s: Stream, cluster: Cluster) -> bool:
    return cluster.front and "past" in cluster.kinds


def _score(s: Stream, cluster: Cluster) -> int:
    kinds = cluster.kinds
    score = 100 if cluster.front else 0
    score += 30 if kinds & _RECURS else 0
    score += 20 if cluster.last else 0
    score += 15 if "offset" in kinds else 0
    score += 5 if any(p.marked for p in cluster.phrases) else 0
    score -= 60 if cluster.is_weak else 0
    if kinds <= _BOUNDS:
        score -= 200 if not kinds & {"start"} else 78
    if kinds == {"shift_back"}:
        score -= 300
    if kinds == {"minutes"}:
        score -= 200
    if kinds == {"trouble"}:
        vague = any(str(p.value).startswith(("vague", "bimonthly")) for p in cluster.phrases)
        score -= 10 if vague and (cluster.front or cluster.last) else 0
        score -= 40 if not vague and not any(p.marked for p in cluster.phrases) else 0
    if s.has(cluster.start, "freq") and s.has(cluster.start - 1, "one", "det"):
        score -= 15
    return score


def _is_epithet(s: Stream, cluster: Cluster) -> bool:
    """ "weekly review, Sundays 6pm": how often is part of a name, on which days comes later."""
    lone = cluster.kinds <= {"every", "part"} and s.has(cluster.start, "freq")
    return lone and cluster.front and (s.is_plain(cluster.end) or s.has(cluster.end, "numbered"))


def _says_how_often(cluster: Cluster) -> bool:
    """ "every Friday at 4pm", and not "Fridays at 4pm"."""
    return "every" in cluster.kinds and not cluster.is_weak and bool(cluster.kinds - {"every"})


def _interval(cluster: Cluster) -> int:
    return max(p.value.number for p in cluster.phrases if isinstance(p.value, Amount))


def _adds(s: Stream, chosen: list[Cluster], other: Cluster) -> bool:
    """Whether another cluster says what the chosen ones leave open."""
    if other.is_weak or other.kinds & {"trouble", "past", "shift"}:
        return False
    held = frozenset[str]().union(*(each.kinds for each in chosen))
    if "trouble" in held:
        return False
    if other.kinds == {"shift_back"}:
        return "shift" not in held and bool(held & _TIMES) and chosen[0].start < other.start
    kinds = other.kinds - {"zone"}
    recurs = bool(held & _RECURS) or _recurs_with_days(held)
    if kinds <= _BOUNDS:
        return recurs and not (kinds & held) and not (kinds == {"length"} and not other.last)
    if not kinds:
        return _facets(held) > frozenset() and (other.last or other.front)
    if kinds == {"every"} and held & {"day", "monthdays", "nths"} and not held & _RECURS:
        return other.last
    epithet = _is_epithet(s, chosen[0]) and len(chosen) == 1
    if epithet and kinds & _NAMED_DAYS and (other.last or other.phrases[0].marked):
        return True
    if epithet:
        held -= {"part"}
    if _facets(kinds) & _facets(held) or not (other.front or other.last or kinds & _RECURS):
        return False
    if any(p.kind == "times" and not p.marked for p in other.phrases) and not other.front:
        return _ends_terse(s, chosen, other)
    if kinds & _TIMES and "sub" in held and not kinds & {"window", "business"}:
        return False
    first, last = sorted((chosen[0], other), key=lambda each: each.start)
    between = range(first.end, last.start)
    return not any(s.has(n, "about") or _reports(s, n) for n in between)


def _ends_terse(s: Stream, chosen: list[Cluster], other: Cluster) -> bool:
    """ "every Monday yoga 6pm": a note that opens with its day and ends with its time."""
    start = other.phrases[0].start
    if other.kinds != {"times"} or not (other.last and chosen[0].front):
        return False
    gap = range(chosen[0].end, start)
    small = ("about", "for", "that", "det", "one", "weak_prep", "num", "before", "after")
    plain = not any(s.has(n, *small) for n in gap)
    return 1 <= len(gap) <= 3 and plain and (s.has(start, "clock") or s.has(start + 1, "ampm"))


def _reports(s: Stream, at: int) -> bool:
    """ "let me know that …", "remind me how …": times in what is told are not when it is told."""
    return s.has(at, "that") and s.has(at - 1, "lead")


def _recurs_with_days(kinds: frozenset[str]) -> bool:
    return bool(kinds & {"nths", "monthdays"})


def _facets(kinds: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    if kinds & _DAYS:
        found.add("days")
    if kinds & _TIMES:
        found.add("times")
    if kinds & _STEPS:
        found |= {"steps"}
    if "offset" in kinds:
        found |= {"days", "times"} if not kinds & _DAYS else {"days"}
    if "past" in kinds:
        found |= {"days", "times"}
    return frozenset(found)


def _event(s: Stream) -> int | None:
    """Where the sentence waits for something to happen."""
    for at in range(len(s.items)):
        if _waits(s, at):
            if _opens(s, at) or (s.has(at - 1, "lead") and s.word(at - 1, "lead") != "to"):
                return at
            reminded = any(s.word(n, "lead") == "remind" for n in range(at))
            if (reminded and s.text(at) != "if") or s.pack.name == "zh":
                return at
        if s.has(at, "event_after"):  # "下雨的时候"
            return at
    return None


def _waits(s: Stream, at: int) -> bool:
    if s.has(at, "event", "event_inside") and not s.has(at, "asap", "trouble", "before"):
        return True
    if not s.has(at, "before", "after") or s.has(at - 1, "unit", "ord", "num"):
        return False
    # "after the meeting", "before my flight": no time stands behind.
    owned = s.has(at + 1, "det", "one") and s.is_plain(at + 2)
    return owned or (s.has(at + 1, "aside") and s.text(at + 1).startswith("the "))


def _opens(s: Stream, at: int) -> bool:
    """Whether nothing but an opening stands before: "please", "right" of "right after"."""
    stressed = at - 1 if s.text(at - 1) in ("right", "just", "straight", "shortly") else at
    return all(s.has(n, "lead") or s.items[n].shape == "mark" for n in range(stressed))


def _unread(s: Stream, found: list[Cluster]) -> Trouble | None:
    """A sentence that opens with "every" but names no unit is no request without a time."""
    for at in range(min(4, len(s.items))):
        if not _opens(s, at):
            break
        if s.has(at, "every") and not s.has(at, "lead") and not s.has(at, "freq"):
            return "vague_recurrence"
        if s.has(at, "at") and s.has(at + 1, "num", "clock"):
            return "not_understood"
    return None


def _beside(s: Stream, chosen: list[Cluster]) -> Trouble | None:
    """Words of time right beside the chosen phrases that nobody could read."""
    for each in chosen:
        behind = each.end
        if s.has(each.start - 1, "before", "after") and _recurs(each):
            return "not_understood"
        if s.has(behind, "event_inside") and _recurs(each):
            return "event"  # "every day when I wake up"
        if s.has(behind, "num") and s.has(behind - 1, "weekday") and behind + 1 >= len(s.items):
            return "not_understood"  # "dentist Friday 13": a date or an hour
        if s.has(behind, "ampm", "oclock") or (
            s.has(behind, "weekday") and not s.is_plain(behind + 1)
        ):
            return "not_understood"
        if s.has(behind, "at") and s.has(behind + 1, "num", "clock", "dot_time"):
            return "not_understood"
        if s.word(behind, "except") == "except" and s.text(behind) not in ("without", "minus"):
            return "not_understood"
        if s.has(behind, "until") and s.pack.name == "en" and _recurs(each):
            return "no_end"
    return None


def _recurs(cluster: Cluster) -> bool:
    return bool(cluster.kinds & _RECURS)
