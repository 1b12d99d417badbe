"""Values as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.cli import words
from holdfast.core.task import Progress

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0042, "4 ms"),
        (2.51, "2.5 s"),
        (59.6, "60 s"),
        (119.0, "119 s"),
        (720.0, "12 min"),
        (12_000.0, "3 h 20 min"),
        (7200.0, "2 h"),
        (200_000.0, "2 d 7 h"),
        (-5.0, "-5.0 s"),
    ],
)
def test_a_duration_reads_in_the_unit_people_use(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("gap", "text"), [(180.0, "3 min ago"), (-20.0, "in 20 s"), (0.1, "now"), (-0.1, "now")]
)
def test_an_instant_is_seen_from_now(gap: float, text: str) -> None:
    assert words.ago(NOW - timedelta(seconds=gap), NOW) == text


def test_an_instant_is_given_both_ways() -> None:
    text = words.instant(NOW - timedelta(minutes=3), NOW)

    assert text.endswith("(3 min ago)")
    assert text.startswith(f"{(NOW - timedelta(minutes=3)).astimezone():%Y-%m-%d %H:%M:%S}")


def test_progress_with_a_total_is_a_bar() -> None:
    progress = Progress(done=3, total=10, message="reading")

    assert words.progress_text(progress, width=10) == "███░░░░░░░  30% reading"
    assert words.progress_text(progress, width=10, ascii_only=True) == "###-------  30% reading"


def test_progress_without_a_total_is_a_count() -> None:
    assert words.progress_text(Progress(done=42)) == "42"


def test_progress_past_its_total_does_not_overflow_the_bar() -> None:
    assert words.progress_text(Progress(done=30, total=10), width=4) == "████ 100%"
