"""Slots of every shape that a schema allows: a schedule within limits, a refusal, or a reply."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest
from tests.integration.assistant.readings import NOW, TEXT, request
from tests.integration.assistant.test_llm_updates import TASKS

from holdfast.assistant.llm.answers import Unusable, read_answer
from holdfast.assistant.llm.compiling import compiled
from holdfast.assistant.llm.schema import compact_schema
from holdfast.recurrence import Schedule

ROUNDS = int(os.environ.get("HOLDFAST_TEST_SLOTS", "300"))


def made(schema: Any, chance: random.Random, depth: int = 0) -> Any:
    """Something of that shape, whatever it means."""
    if "$ref" in schema:
        schema = compact_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return made(chance.choice(schema["anyOf"]), chance, depth)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema["type"]:
        case "object":
            likely = 0.12 if depth == 0 else 0.35
            names = [
                name
                for name in schema["properties"]
                if name in schema["required"] or chance.random() < likely
            ]
            return {n: made(schema["properties"][n], chance, depth + 1) for n in names}
        case "array":
            most = chance.choice([0, 1, 1, 1, 2, 3])
            return [made(schema["items"], chance, depth + 1) for _ in range(most)]
        case "integer":
            return chance.choice([0, 1, 1, 2, 3, 5, 9, 12, 15, 30, 59, -1, -5, 366, 99_999])
        case "boolean":
            return chance.random() < 0.5
        case "string":
            return chance.choice(["every", "inbox", "my inbox", "9am", "UTC", ""])
        case "null":
            return None
    raise AssertionError(schema)


def recurring(chance: random.Random) -> Any:
    """A line that recurs, and says little else: otherwise hardly any of them goes together."""
    line = compact_schema()["properties"]["slots"]["properties"]["lines"]["items"]["properties"]
    units = ["second", "minute", "hour", "day", "workday", "week", "month", "quarter", "year"]
    amount = {"number": chance.choice([0, 1, 2, 5, 59, -1]), "unit": chance.choice(units)}
    more = chance.choice(list(line))
    said: dict[str, Any] = {chance.choice(["every", "every", "sub"]): amount}
    if chance.random() < 0.5:
        said["times"] = [{"hour": chance.randrange(25)}]
    return said | ({more: made(line[more], chance, 2)} if chance.random() < 0.6 else {})


@pytest.mark.parametrize("seed", range(4))
def test_no_slots_crash_the_compiler_or_pass_its_limits(seed: int) -> None:
    chance = random.Random(seed)
    slots = compact_schema()["properties"]["slots"]
    outcomes = {"once": 0, "recurring": 0, "refusal": 0, "change": 0, "unusable": 0}

    for _ in range(ROUNDS):
        said = made(slots, chance)
        said.setdefault("purpose", "summarise")
        if chance.random() < 0.5:
            said["lines"] = [recurring(chance)]
        if chance.random() < 0.7:
            said.pop("trouble", None)
        if chance.random() < 0.7:
            said.pop("operation", None)
        outcomes[outcome(said)] += 1

    assert min(outcomes[name] for name in ("once", "recurring", "refusal")) > 0, outcomes


def outcome(said: Any) -> str:
    quotes = [{"slot": name, "quote": "every"} for name in said][:16]
    try:
        answer = read_answer(json.dumps({"slots": said, "evidence": quotes}), TEXT)
        result = compiled(answer.slots, request(tasks=TASKS, focus="a1"))
    except Unusable:
        return "unusable"
    if result["kind"] == "refuse":
        return "refusal"
    if "dtstart" in result:
        within_limits(result, said)
    return "change" if result["kind"] == "update" else str(result["kind"])


def within_limits(result: Any, said: Any) -> None:
    rules = result.get("rrule")
    if rules is None:
        schedule = Schedule.once(result["dtstart"], tz=result["tz"])
    else:
        text = rules if isinstance(rules, str) else "\n".join(f"RRULE:{each}" for each in rules)
        schedule = Schedule.rrule(text, dtstart=result["dtstart"], tz=result["tz"])
    first = schedule.next_after(NOW)
    assert first is not None, (said, result)
    if rules is None:
        assert (first - NOW).total_seconds() >= 60, (said, result)
    assert (schedule.shortest_gap() or 60) >= 60, (said, result)
