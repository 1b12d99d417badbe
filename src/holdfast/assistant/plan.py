"""What the compiler answers: a plan, or a refusal that says which fields are at fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from holdfast.assistant.slots import Trouble

Json = Any

REASONS: Final[Mapping[Trouble, tuple[tuple[str, ...], str, str]]] = {
    "sun": (("time",), "sunrise and sunset need a place and astronomy", "At what time?"),
    "moon": (("date", "time"), "phases of the moon are not known here", "On which day?"),
    "feast": (("date",), "that feast moves from year to year", "On which date?"),
    "event": (
        ("schedule", "time", "date"),
        "it waits for an event, and only times can be scheduled",
        "At what time, or how often, should it look?",
    ),
    "vague_time": (("time", "schedule", "date"), "no usable time was given", "At what time?"),
    "vague_recurrence": (
        ("recurrence", "schedule", "time"),
        "it says neither how often nor on which days",
        "How often, and on which days?",
    ),
    "unknown_date": (("date",), "that date is not known here", "On which date?"),
    "no_day": (("date", "time", "schedule"), "it names a period but no day", "On which day?"),
    "bimonthly": (
        ("recurrence",),
        "it may mean twice a month or every two months",
        "Every two months, or twice a month?",
    ),
    "contradiction": (
        ("recurrence", "date", "time"),
        "what it says contradicts itself",
        "Which one is meant?",
    ),
    "unknown_zone": (("timezone",), "that zone is not known", "Which city's time is meant?"),
    "impossible_time": (("time",), "there is no such time", "At what time?"),
    "impossible_date": (("date",), "there is no such date", "On which date?"),
    "small_talk": (("purpose",), "there is nothing to do in it", "What should be done, and when?"),
    "no_purpose": (("purpose",), "it does not say what to do", "What should be done?"),
    "not_understood": (
        ("schedule", "time", "date"),
        "its time was not understood",
        "When should it run?",
    ),
    "too_long": (("purpose",), "the request is too long", "Can you say it in fewer words?"),
    "past": (("nextExecutionTime", "time", "date"), "that time is already past", "When instead?"),
    "question": (("purpose",), "it asks about tasks, and changes none", "What should be changed?"),
    "too_soon": (("nextExecutionTime", "time"), "a run is a minute ahead at least", "When?"),
    "no_target": (("target",), "it is not clear which task is meant", "Which task?"),
    "no_end": (("end",), "it would end before its first run", "Until when?"),
}
"""Trouble to the fields it names, what is wrong, and what to ask."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why nothing was made of a request: fields at fault, the reason, and a question to ask."""

    fields: tuple[str, ...]
    reason: str
    question: str

    def mapping(self) -> dict[str, Json]:
        """As `parse` answers it."""
        return {
            "kind": "refuse",
            "fields": list(self.fields),
            "reason": self.reason,
            "question": self.question,
        }


def refusal(trouble: Trouble, fields: tuple[str, ...] | None = None) -> Refusal:
    """The refusal of one kind of trouble, with other fields than usual if given."""
    usual, reason, question = REASONS[trouble]
    return Refusal(fields=fields or usual, reason=reason, question=question)


class Refused(Exception):
    """Raised inside the compiler; never leaves it."""

    def __init__(self, trouble: Trouble, *fields: str) -> None:
        super().__init__(trouble)
        self.refusal = refusal(trouble, fields or None)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A schedule: one run if there are no rules. `dtstart` and `exdate` are wall times in `tz`."""

    dtstart: datetime
    tz: str
    rules: tuple[str, ...] = ()
    exdate: tuple[datetime, ...] = ()
    purpose: str = ""
    assumptions: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """`once` or `recurring`."""
        return "recurring" if self.rules else "once"

    def schedule(self) -> dict[str, Json]:
        """The keys that say when."""
        found: dict[str, Json] = {"dtstart": self.dtstart.isoformat(), "tz": self.tz}
        if self.rules:
            found["rrule"] = self.rules[0] if len(self.rules) == 1 else list(self.rules)
        if self.exdate:
            found["exdate"] = [each.isoformat() for each in self.exdate]
        return found

    def mapping(self) -> dict[str, Json]:
        """As `parse` answers it."""
        return {
            "kind": self.kind,
            **self.schedule(),
            "purpose": self.purpose,
            "assumptions": list(self.assumptions),
        }
