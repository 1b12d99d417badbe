"""What becomes of two readings of one request.

Same runs: it is carried out. They differ, or one of them alone understood: the user is asked, with
a preview. What the grammar refuses because the request itself cannot be (it is past, too close, too
frequent, impossible, contradictory, left open) no model can allow; it may only help where the
grammar did not understand the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.assistant.llm.answers import Answer
from holdfast.assistant.plan import REASONS
from holdfast.assistant.slots import Slots
from holdfast.errors import InvalidOption
from holdfast.ports.planner import Planned
from holdfast.recurrence import Schedule

Result = Mapping[str, Any]

_OPEN: Final = frozenset({"not_understood", "small_talk", "no_target", "no_purpose"})
_OPEN_REASONS: Final = frozenset(REASONS[trouble][1] for trouble in _OPEN)  # type: ignore[index] # a part of them
_WHEN: Final = frozenset({"dtstart", "tz", "rrule", "rdate", "exdate", "interval_seconds"})
_WORDS: Final = frozenset({"purpose", "assumptions", "reason", "question", "fields", "evidence"})
"""Members that may differ between two readings that do the same."""
_FAR: Final = (timedelta(0), timedelta(days=370), timedelta(days=1500))
_RUNS: Final = 40


def is_open(result: Result) -> bool:
    """Whether a model may say more about it than the grammar did."""
    return not is_refusal(result) or result.get("reason") in _OPEN_REASONS


def is_refusal(result: Result) -> bool:
    return result.get("kind") == "refuse"


def joined(offline: Planned, read: Result, answer: Answer, now: datetime) -> Planned:
    """One outcome of the grammar's reading and the model's."""
    ours = offline.result
    proposed = replace(offline, title=answer.title, category=answer.category)
    if same(ours, read, now):
        return replace(proposed, planner="llm+offline", agreed=True)
    if _is_half_told(answer.slots):
        return replace(proposed, agreed=is_refusal(ours))
    if is_refusal(ours):
        return replace(proposed, result=read, planner="llm", agreed=False)
    if _is_default(ours) and not is_refusal(read):
        return replace(proposed, result=read, planner="llm", agreed=False, alternative=ours)
    return replace(proposed, agreed=False, alternative=read)


def _is_half_told(slots: Slots) -> bool:
    """Whether it is a pause with an end, or a skip of certain days: `changing` leaves out which."""
    says_when = bool(slots.lines or slots.until or slots.length or slots.within or slots.offset)
    return slots.operation in ("pause", "skip") and says_when


def _is_default(result: Result) -> bool:
    """Whether the grammar found no time in it, and took the usual one."""
    return any("no time was given" in each for each in result.get("assumptions", ()))


def same(one: Result, other: Result, now: datetime) -> bool:
    """Whether both would do the same: two refusals, or equal runs and an equal change."""
    if is_refusal(one) or is_refusal(other):
        return is_refusal(one) and is_refusal(other)
    if _deeds(one) != _deeds(other):
        return False
    if one.get("op") == "skip" and "exdate" in other:
        return bool(one.get("exdate") == other["exdate"])
    return _runs(one, now) == _runs(other, now)


def _deeds(result: Result) -> Result:
    """What it does, but for when. How long a pause lasts is read by the grammar alone."""
    apart = _WHEN | _WORDS | ({"until"} if result.get("op") == "pause" else set())
    return {
        name: sorted(value) if name == "delivery" else value
        for name, value in result.items()
        if name not in apart and value not in (None, [], ())
    }


def _runs(result: Result, now: datetime) -> list[datetime] | str | None:
    """The runs, near and far; rule texts are never compared."""
    if result.get("dtstart") is None:
        return None
    try:
        schedule = _schedule(result)
        found: list[datetime] = []
        for distance in _FAR:
            begin = now + distance
            found += schedule.between(begin, begin + timedelta(days=36_500), limit=_RUNS)
    except (InvalidOption, OverflowError):
        return f"no schedule: {result!r}"
    return found


def _schedule(result: Result) -> Schedule:
    rules = result.get("rrule")
    if not rules:
        return Schedule.once(result["dtstart"], tz=result["tz"])
    text = rules if isinstance(rules, str) else "\n".join(f"RRULE:{each}" for each in rules)
    return Schedule.rrule(
        text,
        dtstart=result["dtstart"],
        tz=result["tz"],
        rdate=result.get("rdate", ()),
        exdate=result.get("exdate", ()),
    )
