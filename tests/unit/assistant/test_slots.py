"""Slots: their JSON form, and the errors that name the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.assistant.scoring import load

from holdfast.assistant.language.sentences import read_sentence, slots_of
from holdfast.assistant.slots import Amount, Clock, Line, Slots
from holdfast.assistant.slots_json import from_json, to_json
from holdfast.errors import InvalidOption

PUBLIC = Path(__file__).parent / "nl_schedules_public.jsonl"


def test_slots_of_every_public_sentence_survive_json() -> None:
    for case in load(PUBLIC):
        slots = slots_of(read_sentence(case["text"]))

        assert from_json(to_json(slots)) == slots


def test_json_leaves_out_what_says_nothing() -> None:
    line = Line(every=Amount(number=1, unit="day"), times=(Clock(hour=9, half="am"),))

    assert to_json(Slots(purpose="walk", lines=(line,))) == {
        "purpose": "walk",
        "lines": [{"every": {"number": 1, "unit": "day"}, "times": [{"hour": 9, "half": "am"}]}],
    }


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ([], "slots"),
        ({"rrule": "FREQ=DAILY"}, "rrule"),
        ({"lines": {}}, "lines"),
        ({"lines": [{"times": [{"hour": 100}]}]}, "lines[0].times[0].hour"),
        ({"lines": [{"times": [{"hour": True}]}]}, "lines[0].times[0].hour"),
        ({"lines": [{"times": [{}]}]}, "lines[0].times[0].hour"),
        ({"lines": [{"every": {"number": 1}}]}, "lines[0].every.unit"),
        ({"lines": [{"every": {"number": 1, "unit": "eon"}}]}, "lines[0].every.unit"),
        ({"lines": [{"days": [{"kind": "date", "month": 5}]}]}, "lines[0].days[0].day"),
        ({"lines": [{"days": [{"kind": "weekday", "weekday": 12}]}]}, "lines[0].days[0].weekday"),
        ({"lines": [{"weekdays": [0, 7]}]}, "lines[0].weekdays[1]"),
        ({"count": "5"}, "count"),
        ({"purpose": 5}, "purpose"),
        ({"channels": ["SMS"]}, "channels[0]"),
        ({"until": {}}, "until"),
    ],
)
def test_what_is_no_slot_is_refused_by_the_name_of_the_field(data: Any, field: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        from_json(data)

    assert caught.value.option == field


def test_evidence_points_at_the_words_of_the_request() -> None:
    text = "please, every Monday at 9:30am water the plants"

    slots = slots_of(read_sentence(text))

    assert {text[each.start : each.end] for each in slots.evidence} == {"every Monday", "at 9:30am"}
