"""Hops reach any instant, and never come near the horizon."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.timers.hops import next_hop, reach

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = 86_400.0


@pytest.mark.parametrize(
    ("horizon", "expected"),
    [(30 * DAY, 30 * DAY - 3600), (36_000, 32_400), (3600, 3240), (60, 54), (math.inf, math.inf)],
)
def test_a_hop_stays_an_hour_or_a_tenth_below_the_horizon(horizon: float, expected: float) -> None:
    assert reach(horizon) == expected


def test_what_is_near_is_reached_at_once_and_what_has_passed_too() -> None:
    near, past = NOW + timedelta(days=29), NOW - timedelta(days=400)

    assert next_hop(near, now=NOW, horizon=30 * DAY) == near
    assert next_hop(past, now=NOW, horizon=60) == past


def test_a_year_ahead_takes_a_hop_of_the_horizon_without_its_margin() -> None:
    far = NOW + timedelta(days=365)

    assert next_hop(far, now=NOW, horizon=30 * DAY) == NOW + timedelta(days=29, hours=23)
    assert next_hop(far, now=NOW, horizon=math.inf) == far


@given(
    ahead=st.integers(-10_000, 400 * 86_400).map(float),
    horizon=st.floats(60, 30 * DAY),
)
def test_every_hop_is_within_the_horizon_and_the_last_one_is_the_instant(
    ahead: float, horizon: float
) -> None:
    at, now, hops = NOW + timedelta(seconds=ahead), NOW, 0

    while (wake := next_hop(at, now=now, horizon=horizon)) != at and hops < 100:
        assert timedelta(0) < wake - now < timedelta(seconds=horizon)
        now, hops = wake, hops + 1

    assert wake == at or hops == 100
    assert wake <= at
