"""Each rule holds above its limit, for its minutes, and says so in sentences."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from holdfast.core.alerts import RULES, Rule, Sample, alerts_at
from holdfast.core.task import Priority

WELL = Sample(workers=2)
JUST_WELL: dict[str, dict[str, Any]] = {
    "HoldfastNoWorker": {"workers": 1},
    "HoldfastUrgentBacklog": {"urgent": 1000},
    "HoldfastFailures": {"failed_share": 0.25},
    "HoldfastDeadLetters": {"dead_per_minute": 10.0},
    "HoldfastBusy": {"used": 0.9},
    "HoldfastLowWaits": {"oldest": {Priority.LOW: 1500.0, Priority.HIGH: 9000.0}},
    "HoldfastBacklog": {"depths": {"mail": 5000, "other": 5000}},
    "HoldfastPinnedRows": {"oldest_transaction": 300.0, "dead_rows": 1_000_000},
}
TOO_MUCH: list[tuple[str, dict[str, Any], str]] = [
    ("HoldfastNoWorker", {"workers": 0}, "No worker is active: nothing is being started."),
    (
        "HoldfastUrgentBacklog",
        {"urgent": 1001},
        "1,001 tasks of high or critical priority are ready and wait.",
    ),
    (
        "HoldfastFailures",
        {"failed_share": 0.251},
        "25% of what ended in the last five minutes has failed.",
    ),
    ("HoldfastDeadLetters", {"dead_per_minute": 10.6}, "11 tasks a minute become dead letters."),
    (
        "HoldfastBusy",
        {"used": 0.91},
        "Workers have used 91% of their capacity for ten minutes.",
    ),
    (
        "HoldfastLowWaits",
        {"oldest": {Priority.LOW: 1501.0}},
        "A task of low priority has waited for 25 minutes.",
    ),
    (
        "HoldfastBacklog",
        {"depths": {"mail": 5001, "other": 1}},
        "5,001 tasks of queue 'mail' are ready and wait.",
    ),
    (
        "HoldfastPinnedRows",
        {"oldest_transaction": 360.0},
        "A transaction has been open for 6 minutes, and keeps dead rows.",
    ),
    ("HoldfastPinnedRows", {"dead_rows": 1_000_001}, "1,000,001 dead rows slow claims down."),
]


def minutes_of(sample: Sample, number: int) -> list[Sample]:
    """So many minutes of it, oldest first, as noted a few seconds after each minute began."""
    return [replace(sample, ago=60.0 * ago + 3.0) for ago in range(number, -1, -1)]


def names(now: Sample, before: list[Sample]) -> list[str]:
    return [alert.name for alert in alerts_at(now, before)]


@pytest.mark.parametrize("name", JUST_WELL)
def test_what_is_at_its_limit_is_well(name: str) -> None:
    now = replace(WELL, **JUST_WELL[name])

    assert names(now, minutes_of(now, 61)) == []


@pytest.mark.parametrize(("name", "given", "text"), TOO_MUCH)
def test_what_is_above_its_limit_for_long_enough_is_told(
    name: str, given: dict[str, Any], text: str
) -> None:
    now = replace(WELL, **given)

    (alert,) = alerts_at(now, minutes_of(now, 11))

    assert (alert.name, alert.text) == (name, text)


def test_every_rule_is_tried_on_both_sides() -> None:
    assert [*JUST_WELL] == list(dict.fromkeys(name for name, *_ in TOO_MUCH))
    assert [*JUST_WELL] == [rule.name for rule in RULES]


@pytest.mark.parametrize(
    ("minutes", "given", "name"),
    [(2, {"workers": 0}, "HoldfastNoWorker"), (10, {"used": 1.0}, "HoldfastBusy")],
)
def test_a_rule_with_minutes_holds_when_they_are_over(
    minutes: int, given: dict[str, Any], name: str
) -> None:
    now = replace(WELL, **given)
    bad = minutes_of(now, minutes)
    blip = [replace(one, **{key: getattr(WELL, key) for key in given}) for one in bad]

    assert names(now, bad) == [name]
    assert names(now, bad[1:]) == []  # nobody knows what was before
    assert names(WELL, bad) == []
    assert names(now, []) == []
    assert all(names(now, [*bad[:at], blip[at], *bad[at + 1 :]]) == [] for at in range(len(bad)))


def test_what_was_long_before_the_minutes_does_not_matter() -> None:
    none = replace(WELL, workers=0)

    assert names(none, [replace(WELL, ago=240.0), *minutes_of(none, 2)]) == ["HoldfastNoWorker"]


def test_a_note_from_long_ago_says_nothing_of_the_minutes_since() -> None:
    none = replace(WELL, workers=0)

    assert names(none, [replace(none, ago=299.0)]) == ["HoldfastNoWorker"]
    assert names(none, [replace(none, ago=301.0)]) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_all_that_a_rule_says_are_sentences(rule: Rule) -> None:
    bad = replace(WELL, **next(given for name, given, _ in TOO_MUCH if name == rule.name))

    for text in (rule.title, rule.says(bad), rule.advice):
        assert text[0].isupper() or text[0].isdigit()
        assert text.endswith(".")
        assert len(text) < 130


@pytest.mark.parametrize("rule", [r for r in RULES if r.minutes], ids=lambda rule: rule.name)
def test_a_rule_with_minutes_looks_at_nothing_that_notes_do_not_tell(rule: Rule) -> None:
    noted = {"workers", "used", "depths", "oldest", "ago"}
    bad = next(given for name, given, _ in TOO_MUCH if name == rule.name)

    assert bad.keys() <= noted <= {field.name for field in fields(Sample)}
