"""Backoff: grows, is capped, jitters fully, and never breaks."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.retry import RetryPolicy, exponential, fixed
from holdfast.errors import InvalidOption

policies = st.builds(
    RetryPolicy,
    base=st.floats(0, 1e6),
    multiplier=st.floats(1, 1e6),
    cap=st.floats(0, 1e9),
    jitter=st.booleans(),
)


def test_the_default_doubles_from_five_seconds_to_an_hour() -> None:
    policy = exponential(jitter=False)

    assert [policy.delay(n, 0.5) for n in range(1, 12)] == [
        5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600,
    ]  # fmt: skip


def test_a_multiplier_of_five_grows_fivefold() -> None:
    policy = exponential(5, 5, cap=10_000, jitter=False)

    assert [policy.delay(n, 0.5) for n in (1, 2, 3, 4, 5, 6)] == [5, 25, 125, 625, 3125, 10_000]


def test_a_fixed_delay_is_ten_minutes_and_does_not_jitter() -> None:
    assert [fixed().delay(n, 0.25) for n in (1, 2, 99)] == [600, 600, 600]


def test_full_jitter_draws_from_nothing_to_all_of_the_delay() -> None:
    policy = exponential(10)

    assert [policy.delay(2, draw) for draw in (0.0, 0.25, 0.5)] == [0, 5, 10]


def test_a_fixed_delay_may_jitter_too() -> None:
    assert fixed(60, jitter=True).delay(7, 0.5) == 30


@pytest.mark.parametrize("multiplier", [1.5, 2.0, 5.0, 10.0, 1000.0])
def test_a_very_long_series_stays_at_the_cap(multiplier: float) -> None:
    policy = exponential(5, multiplier, jitter=False)

    assert [policy.delay(n, 0.5) for n in (500, 1_000, 10**6)] == [3600] * 3


def test_a_base_of_zero_never_waits() -> None:
    assert [exponential(0, 5, jitter=False).delay(n, 0.5) for n in (1, 10, 10**4)] == [0, 0, 0]


def test_times_may_be_given_as_words() -> None:
    assert exponential("2m", cap="PT1H", jitter=False) == RetryPolicy(
        base=120, multiplier=2, cap=3600, jitter=False
    )
    assert fixed("90s").delay(3, 0.5) == 90


@pytest.mark.parametrize("multiplier", [0.5, 0, -2, 1001, float("nan")])
def test_a_multiplier_that_makes_no_sense_is_refused(multiplier: float) -> None:
    with pytest.raises(InvalidOption, match="multiplier"):
        exponential(5, multiplier)


@pytest.mark.parametrize("option", ["base", "cap"])
def test_a_time_that_makes_no_sense_is_refused_by_its_name(option: str) -> None:
    with pytest.raises(InvalidOption, match=option):
        exponential(**{option: "soon"})  # type: ignore[arg-type]  # the point of the test


@given(policies, st.integers(1, 10**6), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_finite_and_between_nothing_and_the_cap(
    policy: RetryPolicy, n: int, draw: float
) -> None:
    delay = policy.delay(n, draw)

    assert math.isfinite(delay)
    assert 0 <= delay <= policy.cap


@given(policies, st.integers(1, 10_000))
def test_a_later_retry_never_waits_less(policy: RetryPolicy, n: int) -> None:
    steady = RetryPolicy(
        base=policy.base, multiplier=policy.multiplier, cap=policy.cap, jitter=False
    )

    assert steady.delay(n, 0.0) <= steady.delay(n + 1, 0.0)
