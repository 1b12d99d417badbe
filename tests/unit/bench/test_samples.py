"""What the bench says about what it has measured."""

from __future__ import annotations

import pytest
from bench.environments import Unavailable
from bench.machine import Watch
from bench.samples import BEST, ONE, Samples
from bench.table import table
from bench.target import Target, verdicts


@pytest.fixture
def samples() -> Samples:
    return Samples(Watch())


def test_a_case_is_shown_by_its_median_and_its_range(samples: Samples) -> None:
    for rate in (900.0, 3_000.0, 1_000.0):
        samples.rate("A", ONE, lambda rate=rate: rate)  # type: ignore[misc] # a lambda in a loop

    assert samples.cell("A", ONE) == "1,000 (900..3,000)"


def test_the_best_of_several_cases_is_the_highest_median(samples: Samples) -> None:
    samples.rate("A", ONE, lambda: 10.0)
    samples.rate("A", BEST, lambda: 7.0)

    assert samples.median("A", ONE, BEST) == 10.0


def test_a_product_that_fails_is_named_with_its_reason_and_not_tried_again(
    samples: Samples,
) -> None:
    tries = []

    def fail() -> float:
        tries.append(1)
        raise Unavailable("it could not be installed")

    samples.rate("A", ONE, fail)
    samples.rate("A", ONE, fail)

    assert samples.failures == {"A": {ONE: "it could not be installed"}}
    assert samples.cell("A", ONE) == "failed"
    assert len(tries) == 1


def test_an_unforeseen_error_of_one_product_does_not_end_the_run(samples: Samples) -> None:
    def fail() -> float:
        raise OSError("no such command")

    samples.rate("A", ONE, fail)

    assert samples.failures == {"A": {ONE: "OSError: no such command"}}


def test_a_target_is_met_on_its_own_side_only() -> None:
    fast = Target(what="drain", wanted=">= 30", value=29.0, limit=30.0)
    quick = Target(what="pick-up", wanted="<= 3", value=2.9, limit=3.0, at_most=True)

    assert (fast.verdict, quick.verdict) == ("**not met**", "met")


def test_a_target_without_a_figure_is_not_called_met() -> None:
    assert Target(what="drain", wanted=">= 30", value=None, limit=30.0).verdict == "not measured"


def test_targets_are_shown_beside_what_was_measured() -> None:
    target = Target(what="ratio", wanted=">= 3", value=3.256, limit=3.0, form="{:.2f}")

    assert verdicts([target]).splitlines()[2] == "| ratio | >= 3 | 3.26 | met |"


def test_a_table_has_a_rule_for_each_column() -> None:
    assert table(("", "n"), [("a", "1")]) == "| | n |\n|---|---:|\n| a | 1 |\n"
