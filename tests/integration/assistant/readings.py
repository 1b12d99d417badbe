"""Requests, what a grammar makes of them, and what a model may answer: shared by the tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.assistant.llm.planner import LLMPlanner
from holdfast.assistant.plan import refusal
from holdfast.assistant.slots import Trouble
from holdfast.ports.planner import Planned, PlanRequest
from holdfast.settings import Settings

KEY = "sk-never-to-be-seen-0123456789"
NOW = datetime.fromisoformat("2026-05-20T11:30:00-04:00")
TZ = "America/New_York"
TEXT = "every weekday at 9am summarise my inbox"
WEEKDAYS_AT_9 = {
    "kind": "recurring",
    "dtstart": "2026-05-21T09:00:00",
    "tz": TZ,
    "rrule": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0",
    "purpose": "summarise my inbox",
    "assumptions": [],
}
DAILY_AT_9 = WEEKDAYS_AT_9 | {"rrule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0"}


class Fixed:
    """A grammar with one answer."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.result = result

    async def plan(self, _: PlanRequest) -> Planned:
        return Planned(result=self.result)


def request(text: str = TEXT, **more: Any) -> PlanRequest:
    return PlanRequest(text=text, now=NOW, tz=TZ, **more)


def refused(trouble: Trouble = "not_understood") -> dict[str, Any]:
    return refusal(trouble).mapping()


def answer(**changes: Any) -> dict[str, Any]:
    """What a good model answers to `TEXT`; members may be replaced or added."""
    return {
        "evidence": [{"slot": "lines", "quote": "every weekday at 9am"}],
        "slots": {
            "purpose": "summarise my inbox",
            "lines": [
                {
                    "every": {"number": 1, "unit": "workday"},
                    "times": [{"hour": 9, "minute": 0, "half": "am", "part": None}],
                    "window": None,
                    "days": [],
                }
            ],
            "until": None,
            "offset": [],
        },
        "title": "Inbox summary",
        "category": "REPORT",
        **changes,
    }


def with_slots(**changes: Any) -> dict[str, Any]:
    """The good answer, but for these slots; each of them rests on a quote that is there."""
    good = answer()
    quotes = [{"slot": name, "quote": "every"} for name in changes]
    return good | {"slots": good["slots"] | changes, "evidence": [*good["evidence"], *quotes]}


def planner(url: str, offline: Mapping[str, Any], *, timeout: float = 10.0) -> LLMPlanner:
    settings = Settings.load(llm_url=url, llm_key=KEY, llm_model="scripted", llm_timeout=timeout)
    return LLMPlanner(settings, Fixed(offline))
