"""Counts add up, come back from JSON as they were, and tell quantiles."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import metrics
from holdfast.core.metrics import METRICS, SECONDS, Counts, Kind, Metric, Spread

COUNTERS = [metric for metric in METRICS if metric.kind is Kind.COUNTER]
HISTOGRAMS = [metric for metric in METRICS if metric.kind is Kind.HISTOGRAM]
values = st.lists(st.floats(0, 5000) | st.sampled_from(SECONDS), max_size=30)


@st.composite
def counts(draw: Any) -> Counts:
    made = Counts()
    for metric in draw(st.lists(st.sampled_from(COUNTERS), max_size=5)):
        labels = [draw(st.sampled_from("abc")) for _ in metric.labels]
        made.add(metric, *labels, by=draw(st.integers(1, 1000)))
    for metric in draw(st.lists(st.sampled_from(HISTOGRAMS), max_size=5)):
        labels = [draw(st.sampled_from("abc")) for _ in metric.labels]
        made.observe(metric, *labels, values=draw(values))
    return made


def told(counts: Counts) -> tuple[dict[Any, float], dict[Any, Any]]:
    """What they say, without zeros."""
    spreads = {
        key: (spread.buckets, spread.micros)
        for key, spread in counts.spreads.items()
        if spread.count
    }
    return {key: number for key, number in counts.numbers.items() if number}, spreads


@given(counts(), counts(), counts())
def test_counts_add_up_in_any_order_to_the_last_digit(a: Counts, b: Counts, c: Counts) -> None:
    assert told(a.plus(b).plus(c)) == told(c.plus(a.plus(b))) == told(b.plus(c).plus(a))


@given(counts(), counts())
def test_what_came_since_is_what_was_added(before: Counts, more: Counts) -> None:
    assert told(before.plus(more).since(before)) == told(more)


@given(counts(), counts())
def test_adding_changes_neither_of_both(a: Counts, b: Counts) -> None:
    before = told(a), told(b)

    both = a.plus(b)
    both.add(metrics.DEAD)
    both.observe(metrics.LOCK_WAITS, values=[1.0])

    assert (told(a), told(b)) == before


@given(counts())
def test_counts_come_back_from_json(counts: Counts) -> None:
    assert Counts.from_json(json.loads(json.dumps(counts.to_json()))) == counts


def test_what_another_release_counts_otherwise_is_left_out() -> None:
    counts = Counts()
    counts.add(metrics.DEAD, by=3)
    counts.observe(metrics.LOCK_WAITS, values=[1.0])
    said = counts.to_json()
    said["numbers"] += [
        ["cookies_total", 5],
        ["tasks_dlq_total", "late", 5],
        ["task_state_total", 1],
    ]
    said["spreads"] += [
        ["cookie_seconds", [1, 2], 3],
        ["store_latency_seconds", "save", [1, 2], 3],
        ["store_latency_seconds", [0] * 13, 3],
    ]

    assert Counts.from_json(said) == counts


@given(values, values)
def test_values_fall_into_the_buckets_that_counting_one_by_one_finds(
    some: list[float], more: list[float]
) -> None:
    naive = [0] * (len(SECONDS) + 1)
    for value in some + more:
        naive[bisect_left(SECONDS, value)] += 1

    spread = Spread.over(SECONDS)
    spread.take(SECONDS, some)
    spread.take(SECONDS, more)

    assert spread.buckets == naive
    assert spread.count == len(some) + len(more)
    assert spread.micros == pytest.approx(sum(some + more) * 1e6, abs=2)


@given(st.lists(st.floats(0, 3600), min_size=1), st.floats(0.01, 1))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(seen: list[float], share: float) -> None:
    spread = Spread.over(SECONDS)
    spread.take(SECONDS, seen)
    true = sorted(seen)[math.ceil(share * len(seen)) - 1]
    bucket = bisect_left(SECONDS, true)

    found = spread.quantile(share, SECONDS)

    assert found is not None
    assert (0.0, *SECONDS)[bucket] <= found <= SECONDS[bucket]


def test_quantiles_of_nothing_and_of_what_exceeds_all_buckets() -> None:
    spread = Spread.over(SECONDS)
    assert spread.quantile(0.5, SECONDS) is None

    spread.take(SECONDS, [10_000.0])

    assert spread.quantile(0.5, SECONDS) == 3600.0


def test_half_of_what_is_even_within_a_bucket_lies_below_its_middle() -> None:
    spread = Spread.over(SECONDS)
    spread.take(SECONDS, [0.3] * 10)

    assert spread.quantile(0.5, SECONDS) == pytest.approx(0.375)


def test_numbers_and_spreads_are_told_by_label_and_in_sum() -> None:
    counts = Counts()
    counts.add(metrics.RETRIES, "error", "low", by=2)
    counts.add(metrics.RETRIES, "timeout", "high", by=3)
    counts.observe(metrics.DURATIONS, "low", "completed", values=[1.0, 2.0])
    counts.observe(metrics.DURATIONS, "low", "error", values=[3.0])

    assert counts.number(metrics.RETRIES) == 5
    assert counts.number(metrics.RETRIES, "error", "low") == 2
    assert counts.number(metrics.DEAD) == 0
    assert counts.spread(metrics.DURATIONS, "low").count == 3
    assert counts.spread(metrics.DURATIONS, "low", "error").micros == 3_000_000
    assert counts.spread(metrics.DURATIONS, "high").count == 0


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_named_and_described_as_prometheus_wants(metric: Metric) -> None:
    assert re.fullmatch(r"holdfast_[a-z_]+", metric.full_name)
    assert metric.full_name.endswith("_total") or metric.kind is not Kind.COUNTER
    assert metric.says.endswith(".")
    assert list(metric.bounds) == sorted(set(metric.bounds))
    assert bool(metric.bounds) is (metric.kind is Kind.HISTOGRAM)
