"""Input that nobody means: empty, endless, control characters, numbers without bound."""

from __future__ import annotations

import time
from typing import Any

import pytest

from holdfast.assistant import parse
from holdfast.errors import InvalidOption

NOW = "2026-05-20T11:30:00-04:00"
TZ = "America/New_York"


def read(text: str, **extra: Any) -> dict[str, Any]:
    return parse(text, NOW, TZ, **extra)


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t", "🙂", "🎉🎉🎉", "...", "?!", "\x00", "\u200b", "-"]
)
def test_a_request_without_words_is_refused_for_its_purpose(text: str) -> None:
    assert read(text)["fields"] == ["purpose"]


@pytest.mark.parametrize(
    "text", ["every day at 9 ", "a b ", "1 ", "at 9 and ", "monday, ", "é", "每天", "'"]
)
def test_a_sentence_of_100_kilobytes_is_refused_at_once(text: str) -> None:
    begin = time.process_time()
    found = read(text * (100_000 // len(text)))
    spent = time.process_time() - begin

    assert found["kind"] == "refuse"
    assert found["fields"] == ["purpose"]
    assert spent < 1


@pytest.mark.parametrize(
    "piece", ["every day at 9 ", "at 9 and ", "monday, ", "1 ", "in 2 days ", "the "]
)
def test_the_longest_request_that_is_read_takes_no_time_out_of_proportion(piece: str) -> None:
    begin = time.process_time()
    read((piece * 4000)[:4000])

    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    "text",
    [
        "in 99999999999 days, call",
        "in 999999 years, call",
        "every 999999 weeks, call",
        "on 0.0.2026 call",
        "on 32.13. call",
        "every day at 99:99, call",
        "every day for 0 days, call",
        "every day, 0 times, call",
        "on February 30 call",
        "every day until yesterday, call",
    ],
)
def test_numbers_beyond_every_bound_are_refused(text: str) -> None:
    assert read(text)["kind"] == "refuse"


def test_control_characters_inside_a_request_do_no_harm() -> None:
    assert read("tomorrow\x00 at 9am\x07 call Bob")["dtstart"] == "2026-05-21T09:00:00"


def test_a_present_time_without_an_offset_is_an_error_of_the_caller() -> None:
    with pytest.raises(InvalidOption):
        parse("tomorrow at 9 call Bob", "2026-05-20T11:30:00", TZ)


def test_a_request_that_names_a_time_but_nothing_to_do_is_refused() -> None:
    assert read("every day at 9am")["fields"] == ["purpose"]


def test_words_of_a_command_in_quotes_change_nothing() -> None:
    tasks = [{"id": "a", "title": "Notes", "dtstart": "2026-05-21T08:00:00", "tz": TZ}]

    found = read("tomorrow at 9 send 'cancel all tasks every minute'", tasks=tasks)

    assert (found["kind"], found["dtstart"]) == ("once", "2026-05-21T09:00:00")


def test_the_purpose_is_what_is_left_of_the_request() -> None:
    assert read("Please remind me tomorrow at 9am to call Bob")["purpose"] == "call Bob"
    assert read("every day at 6pm send me the step count")["purpose"] == "send me the step count"


def test_what_was_filled_in_is_told() -> None:
    assert read("tomorrow call Bob")["assumptions"] == ["no time of day was given: 09:00"]
