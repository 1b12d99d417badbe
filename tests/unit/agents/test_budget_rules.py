"""Budgets: what there is room for, when a period is over, and what ended runs count for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.agents.budget_reading import changed, read_key
from holdfast.agents.budgets import (
    Assumed,
    Budget,
    Ledger,
    Limits,
    day_of,
    estimated,
    folded,
    in_words,
    month_of,
    must_look,
    no_room,
    released,
    reserved,
    rolled,
)
from holdfast.core.task import Cause, Cost, Priority, State, Task, TaskId
from holdfast.core.usage import Totals, Usage, usage_in, used_by
from holdfast.errors import InvalidOption

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ONE, TWO = TaskId("one"), TaskId("two")


def ledger(**given: Any) -> Ledger:
    return Ledger(day="2026-03-02", **given)


def task(state: State, *, attempt: int = 1, result: bytes | None = None, **cost: Any) -> Task:
    return Task(
        id=ONE, name="answer", queue="default", priority=Priority.NORMAL, state=state,
        created_at=NOON, run_at=NOON, attempt=attempt, charged=attempt, crash_count=0,
        cause=Cause.SUBMITTED, payload=b"{}", rank=0, max_retries=0, result=result,
        cost=Cost(**cost),
    )  # fmt: skip


def test_a_day_and_a_month_are_those_of_the_zone() -> None:
    berlin = Budget(key="owner:ann", zone="Europe/Berlin")
    late = datetime(2026, 3, 31, 22, 30, tzinfo=UTC)  # half past midnight in Berlin, in April

    assert day_of(berlin, late).name == "2026-04-01"
    assert day_of(berlin, late).end == datetime(2026, 4, 1, 22, tzinfo=UTC)
    assert month_of(berlin, late).name == "2026-04"
    assert month_of(berlin, late).end == datetime(2026, 4, 30, 22, tzinfo=UTC)


def test_the_day_of_a_clock_change_ends_at_its_midnight() -> None:
    berlin = Budget(key="owner:ann", zone="Europe/Berlin")
    morning = datetime(2026, 3, 29, 6, tzinfo=UTC)

    assert day_of(berlin, morning).end == datetime(2026, 3, 29, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("limits", "estimate", "word"),
    [
        (Limits(runs=2), Usage(), "runs"),
        (Limits(units=2.5), Usage(units=0.6), "units"),
        (Limits(tokens=100), Usage(tokens_in=1), "tokens"),
        (Limits(cost=0.3), Usage(cost=0.11), "cost"),
    ],
)
def test_a_run_that_would_exceed_any_limit_has_no_room(
    limits: Limits, estimate: Usage, word: str
) -> None:
    used = Totals(runs=1, units=1.0, tokens_in=30, tokens_out=20, cost=0.1)
    full = reserved(ledger(today={"a": used}), ONE, "a", Usage(units=1.0, tokens_in=50, cost=0.1))

    found = no_room(Budget(key="owner:ann", day=limits), full, NOON, estimate)

    assert found is not None
    assert (found.word, found.period.name) == (word, "2026-03-02")
    roomier = {word: getattr(limits, word) + 1}
    assert no_room(Budget(key="owner:ann", day=Limits(**roomier)), full, NOON, estimate) is None


def test_ten_times_a_tenth_is_one_and_fits() -> None:
    budget, now = Budget(key="owner:ann", day=Limits(cost=1.0)), ledger()
    for number in range(10):
        assert no_room(budget, now, NOON, Usage(cost=0.1)) is None
        now = reserved(now, TaskId(str(number)), "a", Usage(cost=0.1))

    assert no_room(budget, now, NOON, Usage(cost=0.1)) is not None


def test_the_month_is_told_before_the_day_since_it_lasts_longer() -> None:
    budget = Budget(key="owner:ann", day=Limits(runs=0), month=Limits(runs=0))

    found = no_room(budget, ledger(), NOON, Usage())

    assert found is not None
    assert found.period.name == "2026-03"
    assert in_words(budget, found) == (
        "the budget of owner ann has no room for another run: 0 of 0 runs used in the month 2026-03"
    )


def test_an_estimate_is_what_people_say_or_the_average_or_what_is_assumed_within_the_limits() -> (
    None
):
    budget = Budget(
        key="owner:ann", day=Limits(tokens=1000), assumed=Assumed(units=2, tokens=4000, cost=0.5)
    )
    seen = reserved(ledger(), ONE, "daily", Usage())
    seen = folded(seen, {ONE: task(State.COMPLETED, units=3.0, tokens_in=70, tokens_out=30)})

    assert estimated(budget, ledger(), "daily", None) == Usage(units=2, tokens_in=1000, cost=0.5)
    assert estimated(budget, ledger(), "daily", 9.0).units == 9.0
    assert estimated(budget, seen, "daily", None) == Usage(units=3, tokens_in=70, tokens_out=30)
    assert estimated(budget, seen, "another", None).tokens == 1000


def test_an_ended_run_counts_what_it_used_and_a_forgotten_one_what_was_expected() -> None:
    expected = Usage(units=5.0, tokens_in=10, cost=0.2)
    both = reserved(reserved(ledger(), ONE, "a", expected), TWO, "a", expected)
    done = task(
        State.COMPLETED, result=b'{"content": "x", "usage": {"cost": 0.01}}', units=1.0, tokens_in=7
    )

    after = folded(both, {ONE: done})

    assert after.open == {}
    assert after.today == {"a": Totals(runs=2, units=6.0, tokens_in=17, cost=0.21)}
    assert after.month == after.today["a"]
    assert (after.held_today, after.averages["a"].usage.units) == (Totals(), 1.0)


def test_a_run_under_way_stays_reserved_and_one_that_never_began_costs_nothing() -> None:
    both = reserved(reserved(ledger(), ONE, "a", Usage(units=1)), TWO, "a", Usage(units=1))

    after = folded(both, {ONE: task(State.RUNNING), TWO: task(State.CANCELLED, attempt=0)})

    assert set(after.open) == {ONE}
    assert (after.today, after.held_today) == ({}, Totals(runs=1, units=1))


def test_what_a_failed_run_has_paid_counts_as_expected() -> None:
    one = reserved(ledger(), ONE, "a", Usage(units=9, cost=0.2))

    after = folded(one, {ONE: task(State.DEAD_LETTER, units=1.0)})

    assert after.today == {"a": Totals(runs=1, units=1.0, cost=0.2)}


def test_a_new_day_begins_anew_and_a_new_month_too() -> None:
    full = ledger(today={"a": Totals(runs=3)}, month=Totals(runs=8))

    tomorrow, april = rolled(full, "2026-03-03"), rolled(full, "2026-04-01")

    assert (tomorrow.today, tomorrow.month) == ({}, Totals(runs=8))
    assert tomorrow.past == {"2026-03-02": {"a": Totals(runs=3)}}
    assert april.month == Totals()
    assert rolled(full, "2026-03-01") == full  # the zone was changed: it does not begin twice


def test_a_run_that_ends_after_midnight_counts_for_the_day_that_fired_it() -> None:
    one = rolled(reserved(ledger(), ONE, "a", Usage(units=4)), "2026-03-03")
    assert (one.held_today, one.held_month) == (Totals(), Totals(runs=1, units=4))

    after = folded(one, {ONE: task(State.COMPLETED, units=2.0)})

    assert after.today == {}
    assert after.past == {"2026-03-02": {"a": Totals(runs=1, units=2.0)}}
    assert after.month == Totals(runs=1, units=2.0)


def test_while_many_run_it_is_looked_every_few_seconds_which_have_ended() -> None:
    few, many = ledger(), ledger(folded_at=NOON)
    for number in range(20):
        few = reserved(few, TaskId(str(number)), "a", Usage())
    for number in range(21):
        many = reserved(many, TaskId(str(number)), "a", Usage())

    assert not must_look(ledger(), NOON)
    assert must_look(few, NOON)
    assert not must_look(many, NOON + timedelta(seconds=4.9))
    assert must_look(many, NOON + timedelta(seconds=5))


def test_a_released_run_leaves_nothing() -> None:
    assert released(reserved(ledger(), ONE, "a", Usage(units=4)), [ONE]) == ledger()


def test_usage_is_the_larger_of_what_was_reported_and_what_the_result_tells() -> None:
    told = b'{"usage": {"units": 1, "tokens_in": 50, "tokens_out": "no", "cost": -3}}'

    used = used_by(task(State.COMPLETED, result=told, units=2.0, tokens_in=10, tokens_out=5))

    assert used == Usage(units=2.0, tokens_in=50, tokens_out=5, cost=0.0)
    assert usage_in([1]) is None
    assert usage_in({"usage": {"cost": float("inf")}}) == Usage()


def test_budgets_are_read_and_what_is_wrong_is_named() -> None:
    plain = Budget(key="owner:ann")

    made = changed(plain, day={"runs": 3, "cost": None}, zone="Europe/Berlin")

    assert made == replace(plain, day=Limits(runs=3), zone="Europe/Berlin")
    for wrong in ({"day": {"run": 3}}, {"day": {"runs": 1.5}}, {"month": {"cost": -1}},
                  {"zone": "Mars/Base"}, {"assumed": {"tokens": True}}):  # fmt: skip
        with pytest.raises(InvalidOption):
            changed(plain, **wrong)
    for key in ("ann", "owner:", "schedule:\x00", 7):
        with pytest.raises(InvalidOption, match="key"):
            read_key(key)
