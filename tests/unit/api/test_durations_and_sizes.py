"""Lengths of time and sizes, the way people write them."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.duration import LONGEST, parse_duration, parse_size


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (30, 30.0),
        (1.5, 1.5),
        (0, 0.0),
        ("30", 30.0),
        (".5", 0.5),
        ("30s", 30.0),
        ("250ms", 0.25),
        ("10m", 600.0),
        ("10 min", 600.0),
        ("1h30m", 5400.0),
        ("1h 30m", 5400.0),
        ("1.5h", 5400.0),
        (" 2 hours ", 7200.0),
        ("2d", 172_800.0),
        ("1w", 604_800.0),
        ("PT10M", 600.0),
        ("PT1.5S", 1.5),
        ("P1DT2H", 93_600.0),
        ("P2W", 1_209_600.0),
        ("PT0S", 0.0),
        (timedelta(minutes=2), 120.0),
    ],
)
def test_a_duration_is_read_as_seconds(written: object, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        "", "abc", "s", "10x", "1h30", "h1", "1h,30m", "-5s", "P", "PT", "P1DT", "P1Y", "P1M",
        "10M", "1e3", "١٠s", "1m m", None, True, [], {}, b"30s", math.nan, -1, timedelta(-1),
        math.inf, -math.inf, LONGEST * 2, "99999999999d", 10**400, 10**5000,
    ],
    ids=lambda written: type(written).__name__ if isinstance(written, int) else None,
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_what_was_expected(written: object) -> None:
    with pytest.raises(ValueError, match=r"^expected a duration .*got "):
        parse_duration(written)


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_people_and_iso_spell_the_same_time(days: int, hours: int, minutes: int, secs: int) -> None:
    exact = timedelta(days=days, hours=hours, minutes=minutes, seconds=secs).total_seconds()

    assert parse_duration(f"{days}d{hours}h{minutes}m{secs}s") == exact
    assert parse_duration(f"P{days}DT{hours}H{minutes}M{secs}S") == exact


@given(st.text())
def test_no_text_makes_the_parser_fail_in_any_other_way(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        seconds = 0.0 if "expected a duration" in str(error) else -1.0

    assert seconds >= 0


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (0, 0),
        (1024, 1024),
        ("1024", 1024),
        ("512KiB", 512 * 1024),
        ("1MiB", 1024**2),
        ("1 MB", 1000**2),
        ("1.5k", 1500),
        ("2GiB", 2 * 1024**3),
        ("10b", 10),
    ],
)
def test_a_size_is_read_as_bytes(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("written", ["", "MiB", "1XB", "-1", -1, 1.5, True, None, "1e3"])
def test_what_is_no_size_is_refused_with_what_was_expected(written: object) -> None:
    with pytest.raises(ValueError, match=r"^expected a size .*got "):
        parse_size(written)
