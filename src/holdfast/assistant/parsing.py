"""`parse`: the offline planner as a plain function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.assistant.compiler import compile_slots
from holdfast.assistant.language.delivery_phrases import read_delivery
from holdfast.assistant.language.sentences import (
    LONGEST,
    Sentence,
    is_opening,
    read_sentence,
    slots_of,
)
from holdfast.assistant.plan import Plan, refusal
from holdfast.assistant.updates import points_at_a_task, read_update
from holdfast.errors import InvalidOption

Json = Any


def parse(
    text: str,
    now: datetime | str,
    tz: str,
    tasks: Sequence[Mapping[str, Json]] | None = None,
    focus: str | None = None,
) -> dict[str, Json]:
    """What a request means, without a model: a schedule, a change of a task, or a refusal.

    Args:
        text: the request, in any language that has a pack.
        now: the present time, aware, or ISO 8601 with an offset.
        tz: the user's zone, an IANA name.
        tasks: the user's tasks: id, title, dtstart, rrule, tz, exdate, delivery, status.
        focus: the id of the task that was last talked about.

    Returns:
        A mapping whose `kind` is `once`, `recurring`, `update` or `refuse`; a refusal names
        `fields`, a `reason` and a `question`. It never raises for what a user may write.
    """
    moment = _moment(now)
    if len(text) > LONGEST:
        return refusal("too_long").mapping()
    sentence = read_sentence(text)
    update = read_update(sentence, tasks or (), focus, moment, tz)
    if update is not None:
        return update
    slots = slots_of(sentence)
    plan = compile_slots(slots, moment, tz)
    if isinstance(plan, Plan):
        if not slots.purpose or (not slots.has_schedule and is_opening(slots.purpose)):
            return refusal("no_purpose").mapping()
        if not slots.has_schedule and points_at_a_task(sentence, tasks or (), focus):
            return refusal("no_target", ("target", "schedule")).mapping()
        return _with_delivery(plan, sentence)
    return plan.mapping()


def _with_delivery(plan: Plan, sentence: Sentence) -> dict[str, Json]:
    """The plan, with the channels that its request names for its result."""
    purpose, channels = read_delivery(plan.purpose, sentence.stream.pack.name)
    if not channels:
        return plan.mapping()
    return {**replace(plan, purpose=purpose).mapping(), "delivery": list(channels)}


def _moment(now: datetime | str) -> datetime:
    moment = datetime.fromisoformat(now) if isinstance(now, str) else now
    if moment.tzinfo is None:
        raise InvalidOption("now", f"expected a time with an offset, got {now!r}")
    return moment
