"""Random rules, held against the slow reference and against dateutil."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidOption
from holdfast.recurrence import Schedule

from .dates import LONG_AGO
from .reference import expand, instants
from .rules_at_random import Case, cases

UNHURRIED = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def schedule_of(case: Case) -> Schedule | None:
    try:
        return Schedule.rrule(
            case.text, dtstart=case.dtstart, tz=case.tz, gap=case.gap, overlap=case.overlap
        )
    except InvalidOption as refusal:
        if "never" in str(refusal) or "does not run by then" in str(refusal):
            return None
        raise


def runs_of(schedule: Schedule, end: datetime) -> list[datetime]:
    return schedule.between(LONG_AGO, end, limit=100_000)


@UNHURRIED
@given(case=cases(), probe=st.floats(-0.1, 1.05))
def test_runs_are_those_of_the_slow_reference(case: Case, probe: float) -> None:
    expected = expand(
        case.text, case.dtstart, case.tz, case.days, gap=case.gap, overlap=case.overlap
    )
    schedule = schedule_of(case)
    if schedule is None:
        assert expected == []
        return
    span = timedelta(days=case.days) if "SECONDLY" not in case.text else timedelta(hours=case.days)
    begin = instants(case.dtstart, ZoneInfo(case.tz), "shift", "first")[0]
    horizon = begin + span - timedelta(days=3 if span > timedelta(days=4) else 0, hours=2)

    found = runs_of(schedule, horizon)

    assert found == [each for each in expected if each < horizon], case
    after = begin + probe * (horizon - begin)
    place = bisect_right(expected, after)
    if place < len(expected) and expected[place] < horizon:
        assert schedule.next_after(after) == expected[place]


@settings(UNHURRIED, max_examples=40)
@given(case=cases(freqs=("YEARLY", "MONTHLY", "WEEKLY", "DAILY"), end=False))
def test_wall_times_are_those_of_dateutil(case: Case) -> None:
    # Where dateutil is known to differ from the RFC: a first partial week under BYSETPOS, week
    # numbers without a weekday, and plain days beside numbered ones, which it intersects.
    assume(not ("WEEKLY" in case.text and "BYSETPOS" in case.text))
    assume("BYWEEKNO" not in case.text or "BYDAY" in case.text)
    days = re.search("BYDAY=([^;]*)", case.text)
    assume(days is None or len({len(each) > 2 for each in days[1].split(",")}) == 1)
    schedule = schedule_of(replace(case, tz="UTC"))
    # What never runs, dateutil would look for until the year 9999: that took up to a minute.
    assume(schedule is not None)
    assert schedule is not None
    horizon = case.dtstart + timedelta(days=min(case.days, 1000))
    expected = rrulestr(case.text, dtstart=case.dtstart).between(
        case.dtstart, horizon - timedelta(seconds=1), inc=True
    )

    found = runs_of(schedule, horizon.replace(tzinfo=UTC))

    assert [each.replace(tzinfo=None) for each in found] == expected


@UNHURRIED
@given(case=cases(), days=st.integers(0, 3000))
def test_the_next_run_is_the_same_however_it_is_reached(case: Case, days: int) -> None:
    schedule = schedule_of(case)
    assume(schedule is not None)
    assert schedule is not None
    after = case.dtstart.replace(tzinfo=UTC) + timedelta(days=days)

    following = schedule.next_after(after)

    if following is not None:
        assert following > after
        assert schedule.next_after(following - timedelta(seconds=1)) == following
        middle = after + (following - after) / 2
        assert schedule.next_after(middle) == following
        assert Schedule.from_json(schedule.to_json()).next_after(after) == following


@UNHURRIED
@given(case=cases(end=False), count=st.integers(1, 60))
def test_count_keeps_the_first_matches_and_nothing_else(case: Case, count: int) -> None:
    # In UTC: elsewhere two matches may meet in one instant.
    try:
        endless = Schedule.rrule(case.text, dtstart=case.dtstart)
    except InvalidOption:
        return
    far = datetime(9000, 1, 1, tzinfo=UTC)

    counted = Schedule.rrule(f"{case.text};COUNT={count}", dtstart=case.dtstart)

    assert runs_of(counted, far) == endless.between(LONG_AGO, far, limit=count)
