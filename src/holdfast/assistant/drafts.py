"""A plan made ready to be stored: its rule, and what people see of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from holdfast.assistant.titles import category_of, title_of
from holdfast.core.task import Json
from holdfast.ports.planner import Planned
from holdfast.recurrence import Schedule

SHOWN_RUNS: Final = 5
CHANNELS: Final[Mapping[str, str]] = {"EMAIL": "email", "WEB": "inbox", "MOBILE": "push"}
"""The words of requests for where results go, and what the channels are called here."""
WORDS: Final = {name: word for word, name in CHANNELS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A task that could be made. `channels` None means that nothing was said about them."""

    rule: Schedule
    purpose: str
    title: str
    category: str
    channels: tuple[str, ...] | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def delivery_title(self) -> str:
        """What stands over its results."""
        return self.title

    @property
    def description(self) -> str:
        """One sentence for people: what, and when."""
        return f"{self.title}, {self.rule.words}"


def draft_of(planned: Planned, text: str) -> Draft:
    """The draft of a plan for a new task. `InvalidOption` if its rule is none."""
    result = planned.result
    purpose = str(result.get("purpose") or text).strip()
    delivery = result.get("delivery")
    return Draft(
        rule=rule_of_plan(result),
        purpose=purpose,
        title=planned.title or title_of(purpose),
        category=planned.category or category_of(text),
        channels=None if not delivery else channels_of(delivery),
        assumptions=tuple(result.get("assumptions") or ()),
    )


def rule_of_plan(result: Mapping[str, Json]) -> Schedule:
    """The rule that a plan says: one run at `dtstart` unless it has rules."""
    rules, tz, start = rules_of(result), result["tz"], result["dtstart"]
    if not rules:
        return Schedule.once(start, tz=tz)
    return Schedule.rrule("\n".join(rules), dtstart=start, tz=tz, exdate=result.get("exdate") or ())


def rules_of(result: Mapping[str, Json]) -> list[str]:
    given = result.get("rrule") or []
    return [given] if isinstance(given, str) else list(given)


def channels_of(delivery: Sequence[str]) -> tuple[str, ...]:
    """Channels by the words of a request; others are taken by name."""
    return tuple(CHANNELS.get(word.upper(), word.lower()) for word in delivery)


def next_runs(rule: Schedule, after: datetime) -> list[str]:
    """The next five runs as people read them: local time with its offset."""
    zone, runs = ZoneInfo(rule.tz), list[str]()
    at = rule.next_after(after)
    while at is not None and len(runs) < SHOWN_RUNS:
        runs.append(at.astimezone(zone).isoformat(timespec="seconds"))
        at = rule.next_after(at)
    return runs


def shown_rule(rule: Schedule) -> dict[str, Json]:
    """The rule as an answer has it (`PlannedSchedule`)."""
    said = rule.to_json()
    return {
        "words": rule.words,
        "tz": rule.tz,
        "dtstart": said.get("dtstart") or "",
        "rrule": list(said.get("rules") or ()),
        "exdate": list(said.get("exdate") or ()),
    }
