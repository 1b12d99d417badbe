"""The new schedule of a task: what was said laid over what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.assistant.changes import added, merged, moved
from holdfast.assistant.compiler import compile_slots
from holdfast.assistant.language.amounts import read_amounts
from holdfast.assistant.language.attaching import attach
from holdfast.assistant.language.clock_phrases import read_item
from holdfast.assistant.language.stream import Phrase
from holdfast.assistant.old_schedules import runs_between, slots_of_task
from holdfast.assistant.plan import Plan, Refused
from holdfast.assistant.present import Present
from holdfast.assistant.slots import Amount, Line, Slots
from holdfast.assistant.update_requests import UpdateRequest

Json = Any
_DEFERS: Final = frozenset({"postpone", "delay", "defer", "push", "put", "hold", "move", "shift"})
"""First words of verbs that put a task off."""


def rescheduled(request: UpdateRequest, task: Mapping[str, Json]) -> dict[str, Json]:
    """The keys that say when it runs from now on."""
    old = slots_of_task(task, request.tz)
    present = request.present(task)
    shift = says_amount(request)
    if shift is not None:
        at = runs_between(task, request.tz, request.now, None, 1)
        if not at:
            raise Refused("past")
        changed = moved(old, shift, present, Present(instant=at[0], zone=present.zone))
    else:
        changed = _merged(request, old)
    plan = compile_slots(changed, request.now, request.tz)
    return plan.schedule() if isinstance(plan, Plan) else plan.mapping()


def says_amount(request: UpdateRequest) -> tuple[Amount, ...] | None:
    """ "an hour later", "by 30 minutes", "forward two hours": by how much it moves."""
    s = request.s
    for at in range(len(s.items)):
        found = read_amounts(s, at)
        if found is None or at in request.mention.words:
            continue
        if at - 1 not in request.mention.words and s.has(at - 1, "every", "in"):
            continue
        if any(p.start <= at < p.end and p.kind == "times" for p in request.words.phrases):
            continue
        amounts, end = found
        sign = _sign(request, at, end)
        if sign is not None:
            return tuple(replace(each, number=sign * each.number) for each in amounts)
    return None


def _sign(request: UpdateRequest, at: int, end: int) -> int | None:
    """Whether the amount that stands here makes it later (1) or earlier (-1), if either."""
    s, verb = request.s, request.words.verb
    if s.has(at - 1, "for"):
        return 1 if (verb is not None and s.has(verb, "defers")) or _puts_off(request) else None
    sign = s.number(end, "later_by")
    if sign is not None:
        return sign
    if s.has(end, "later"):
        return 1
    if s.has(at - 1, "by_amount", "pronoun", "forward", "backward") or s.has(at - 1, "later_by"):
        earlier = request.has("forward") or s.number(at - 1, "later_by") == -1
        return -1 if earlier else 1
    if verb is None:
        return None
    if s.has(verb, "defers"):
        return -1 if s.has(verb, "forward") else 1
    if at - 1 in request.mention.words and s.word(verb, "op") == "reschedule":
        return -1 if request.has("forward") else 1 if request.has("backward", "defers") else None
    return None if _in_phrase(request, at) else s.number(verb, "op_shift")


def _puts_off(request: UpdateRequest) -> bool:
    verb = request.words.verb
    return verb is not None and request.s.text(verb) == "put" and request.has("turn_off")


def _in_phrase(request: UpdateRequest, at: int) -> bool:
    """Whether a time or day was read there: the "14h" of "à 14h" is no amount."""
    return any(p.start <= at < p.end for p in request.words.phrases)


def says_bare_time(request: UpdateRequest) -> Line | None:
    """A number that stands for a time because something is changed to it."""
    s = request.s
    for at in range(len(s.items)):
        if at in request.mention.words or not s.has(at, "num", "clock", "half", "quarter", "part"):
            continue
        found = None if s.has(at, "one_word") else read_item(s, at, bare=True)
        if found is not None and read_amounts(s, at) is None:
            return Line(times=(found[0],))
    return None


def _merged(request: UpdateRequest, old: Slots) -> Slots:
    phrases = _phrases(request)
    bounds = {"until", "length"}
    new = attach(request.s, [p for p in phrases if p.kind not in bounds])
    if new.trouble is not None:
        raise Refused(new.trouble)
    until, length = request.value("until"), request.value("length")
    if not new.lines and not new.offset and until is None and length is None:
        line = says_bare_time(request)
        if line is not None:
            new = replace(new, lines=(line,))
        elif new.zone is None and not (new.except_weekdays or new.except_days or new.start):
            raise Refused("vague_time", "schedule", "time")
    if _adds(request) and old.recurs and until is None and length is None:
        return added(old, new)
    deferred = until is not None and _defers(request)
    if deferred and not old.recurs:
        days = () if until.day is None else (until.day,)
        times = () if until.clock is None else (until.clock,)
        day_line = Line(days=days, times=times or _times_of(new))
        return merged(old, replace(new, lines=(day_line,)))
    return merged(old, replace(new, until=until, length=length), deferred=deferred)


def _adds(request: UpdateRequest) -> bool:
    """ "add Saturdays", "also at 8pm": what is said comes on top of what it has."""
    verb = request.words.verb
    return request.has("add_channel") or (
        verb is not None and request.s.text(verb) in ("add", "include")
    )


def _phrases(request: UpdateRequest) -> list[Phrase]:
    """What it says about time; weekdays that are given up become exceptions."""
    phrases = list(request.words.phrases)
    said = request.words.operation
    if said not in ("cancel", "skip") and not (said is None and request.denies):
        return phrases
    return [replace(p, kind="except_weekdays") if p.kind == "weekdays" else p for p in phrases
            if p.kind != "every"]  # fmt: skip


def _times_of(new: Slots) -> tuple[Any, ...]:
    return new.lines[0].times if new.lines else ()


def _defers(request: UpdateRequest) -> bool:
    verb = request.words.verb
    text = "" if verb is None else request.s.text(verb)
    if verb is not None and (request.s.number(verb, "op_shift") or 0) > 0:
        return True
    return text.split(" ")[0] in _DEFERS or request.has("defers")
