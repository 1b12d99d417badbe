"""Scores the planner on files of cases: a request, a present time, and what it must give.

Rules are never compared as text: the runs that they give are, found with the project's own engine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from holdfast.assistant import parse
from holdfast.recurrence import Schedule

Json = Any
FAR = timedelta(days=366 * 40)


@dataclass(frozen=True)
class Score:
    """How a file went. `wrong` are the answers that are no refusals and not what was meant."""

    cases: int
    exact: int
    wrong: int
    faults: tuple[str, ...]

    @property
    def share(self) -> float:
        return self.exact / self.cases

    @property
    def wrong_share(self) -> float:
        return self.wrong / self.cases


def load(file: Path) -> list[dict[str, Json]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def answer(case: Mapping[str, Json]) -> dict[str, Json]:
    extra = {key: case[key] for key in ("tasks", "focus") if key in case}
    return parse(case["text"], case["now"], case["tz"], **extra)


def score(cases: list[dict[str, Json]]) -> Score:
    faults: list[str] = []
    wrong = 0
    for case in cases:
        result = answer(case)
        fault = difference(case, result)
        if fault:
            faults.append(f"{case['text']!r}: {fault}")
            wrong += result["kind"] != "refuse"
    return Score(len(cases), len(cases) - len(faults), wrong, tuple(faults))


def difference(case: Mapping[str, Json], result: Mapping[str, Json]) -> str:
    """Empty if the answer is what the case expects."""
    expect = case["expect"]
    if result["kind"] != expect["kind"]:
        return f"{result['kind']} for {expect['kind']}"
    if expect["kind"] == "refuse":
        named = set(result["fields"])
        met = len(named) <= 3 and named & set(expect["fields"])
        return "" if met else f"{sorted(named)} for {expect['fields']}"
    if expect["kind"] == "update":
        other = _update_difference(case, result)
        if other or expect["op"] != "reschedule":
            return other
    return _runs_difference(case, result)


def _update_difference(case: Mapping[str, Json], result: Mapping[str, Json]) -> str:
    expect = case["expect"]
    for key in ("op", "target"):
        if result[key] != expect[key]:
            return f"{key} {result[key]} for {expect[key]}"
    match expect["op"]:
        case "deliver":
            same = set(result["delivery"]) == set(expect["delivery"])
        case "rename":
            same = result["title"].lower() == expect["title"].lower()
        case "skip":
            same = _instants(result["exdate"]) == _instants(expect["exdate"])
        case "pause" if expect.get("until"):
            same = _instants([result.get("until")]) == _instants([expect["until"]])
        case _:
            same = True
    return "" if same else f"{dict(result)} for {expect}"


def _instants(texts: list[Any]) -> set[datetime | None]:
    return {datetime.fromisoformat(each).astimezone(UTC) if each else None for each in texts}


def _runs_difference(case: Mapping[str, Json], result: Mapping[str, Json]) -> str:
    expect = case["expect"]
    now = datetime.fromisoformat(case["now"])
    zone = ZoneInfo(case["tz"])
    schedule = schedule_of(result, case["tz"])
    wanted = sorted(datetime.fromisoformat(each) for each in expect["next"])
    found = runs(schedule, now, len(wanted) + (len(wanted) < 3))
    if found != wanted:
        return f"{[str(each.astimezone(zone)) for each in found]} for {expect['next']}"
    if "total" in expect:
        every = runs(schedule, now, expect["total"] + 1)
        if len(every) != expect["total"] or every[-1] != datetime.fromisoformat(expect["last"]):
            return f"{len(every)} runs for {expect['total']}"
    if "probe" in expect:
        after = datetime.fromisoformat(expect["probe"]["after"])
        far = runs(schedule, after, 2)
        if far != [datetime.fromisoformat(each) for each in expect["probe"]["next"]]:
            return f"{far} for {expect['probe']['next']}"
    return ""


def schedule_of(result: Mapping[str, Json], tz: str) -> Schedule:
    rules = result.get("rrule") or []
    zone = result.get("tz") or tz
    if not rules:
        return Schedule.once(result["dtstart"], tz=zone)
    lines = [rules] if isinstance(rules, str) else rules
    text = "\n".join(f"RRULE:{each}" for each in lines)
    return Schedule.rrule(text, dtstart=result["dtstart"], tz=zone, exdate=result.get("exdate", ()))


def runs(schedule: Schedule, after: datetime, limit: int) -> list[datetime]:
    return schedule.between(after + timedelta(seconds=1), after + FAR, limit=limit)
