"""Requests with other case, marks, typing mistakes and order: no crash, rarely another kind."""

from __future__ import annotations

import random
from pathlib import Path

from tests.unit.assistant.scoring import answer, load

PUBLIC = Path(__file__).parent / "nl_schedules_public.jsonl"
NUMBER = 10_000
SAME_KIND = 0.92
"""0.932 when this was written; most of the rest have a foreign letter inside a word of time."""
KINDS = {"once", "recurring", "refuse", "update"}


def other_case(text: str, draw: random.Random) -> str:
    return draw.choice((str.upper, str.lower, str.title, str.swapcase))(text)


def other_marks(text: str, draw: random.Random) -> str:
    mark = draw.choice((".", "!", "?", " …", ",", "  ", " 🙂", "\n", "\t", ";", " - "))
    at = draw.choice((0, len(text)))
    return text[:at] + mark + text[at:]


def mistyped(text: str, draw: random.Random) -> str:
    words = [each for each in text.split(" ") if len(each) > 4 and each.isalpha()]
    if not words:
        return text
    word = draw.choice(words)
    at = draw.randrange(1, len(word) - 2)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return text.replace(word, swapped, 1)


def other_order(text: str, draw: random.Random) -> str:
    parts = text.split(", ")
    draw.shuffle(parts)
    return ", ".join(parts)


def polite(text: str, draw: random.Random) -> str:
    return draw.choice(("please ", "hey, ", "ok so ", "could you ")) + text


def noise(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    return text[:at] + chr(draw.randrange(1, 0x3000)) + text[at:]


MUTATIONS = (other_case, other_marks, mistyped, other_order, polite, noise)


def test_ten_thousand_mutated_requests_never_crash_and_rarely_change_kind() -> None:
    draw = random.Random(16)
    cases = load(PUBLIC)
    same = 0
    for _ in range(NUMBER):
        case = draw.choice(cases)
        text = draw.choice(MUTATIONS)(case["text"], draw)

        result = answer({**case, "text": text})

        assert result["kind"] in KINDS, text
        same += result["kind"] == case["expect"]["kind"]

    assert same / NUMBER >= SAME_KIND
