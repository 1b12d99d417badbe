"""Which runs are fired and what becomes of the others: `decide`, by tables."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from tests.unit.schedules.series import series_of, utc

from holdfast.core.task import State, TaskId
from holdfast.schedules.deciding import Decision, decide, resumed
from holdfast.schedules.jitter import jittered
from holdfast.schedules.occurrence import Origin, RunStatus
from holdfast.schedules.reading import read_rule
from holdfast.schedules.series import CatchUp, CatchUpMode, Overlap, Series, Status

FIRST, SECOND = TaskId("first"), TaskId("second")


def fired(decision: Decision) -> list[tuple[str, Origin]]:
    return [(f"{fire.at:%m-%d %H:%M}", fire.origin) for fire in decision.fires]


def missed(decision: Decision) -> int:
    return sum(note.number for note in decision.notes if note.status is RunStatus.MISSED)


def skipped(decision: Decision) -> list[str]:
    return [f"{n.at:%m-%d %H:%M}" for n in decision.notes if n.status is RunStatus.SKIPPED]


def test_a_run_in_time_is_fired_and_the_series_advances() -> None:
    daily = series_of("0 9 * * *", "2026-03-02 09:00")

    decision = decide(daily, utc("2026-03-02 09:00:02"), {})

    assert fired(decision) == [("03-02 09:00", Origin.SCHEDULE)]
    assert decision.notes == []
    assert decision.series.next_at == utc("2026-03-03 09:00")
    assert decision.series.last_at == utc("2026-03-02 09:00")
    assert decision.series.status is Status.ACTIVE


def test_nothing_is_decided_before_a_run_is_due() -> None:
    daily = series_of("0 9 * * *", "2026-03-02 09:00")

    decision = decide(daily, utc("2026-03-02 08:59:59"), {})

    assert decision == Decision(daily)


# Nobody was there from Monday 2 March, 08:00, until Monday 9 March.

ONE, ALL, SKIP = CatchUp(), CatchUp(CatchUpMode.ALL), CatchUp(CatchUpMode.SKIP)
WEEK = 7 * 86_400.0
CAUGHT_UP, ON_TIME = Origin.CATCH_UP, Origin.SCHEDULE

DOWN_FOR_A_WEEK: dict[str, tuple[tuple[str, str, str], dict[CatchUp, tuple[list[str], int]]]] = {
    # rule, next run, back at: what each policy fires, and how many it misses
    "daily, back within 12 hours": (
        ("0 9 * * *", "2026-03-02 09:00", "2026-03-09 10:30"),
        {
            ONE: (["03-09 09:00"], 7),
            ALL: (["03-09 09:00"], 7),
            SKIP: ([], 8),
            CatchUp(CatchUpMode.ALL, window=WEEK): (
                [f"03-{day:02} 09:00" for day in range(3, 10)],
                1,
            ),
            CatchUp(CatchUpMode.ALL, most=2, window=WEEK): (["03-08 09:00", "03-09 09:00"], 6),
            CatchUp(CatchUpMode.ONE, window=3600.0): ([], 8),
        },
    ),
    "daily, back later": (
        ("0 9 * * *", "2026-03-02 09:00", "2026-03-09 22:00"),
        {ONE: ([], 8), ALL: ([], 8), SKIP: ([], 8)},
    ),
    "daily, back in time for one": (
        ("0 9 * * *", "2026-03-02 09:00", "2026-03-09 09:00:20"),
        {
            ONE: (["03-09 09:00"], 7),
            ALL: (["03-09 09:00"], 7),
            SKIP: (["03-09 09:00"], 7),
        },
    ),
    "hourly": (
        ("every 1h", "2026-03-02 09:00", "2026-03-09 09:30"),
        {
            ONE: (["03-09 09:00"], 168),
            ALL: (["03-09 09:00"], 168),
            SKIP: ([], 169),
            CatchUp(CatchUpMode.ALL, window=3 * 3600.0): (
                ["03-09 07:00", "03-09 08:00", "03-09 09:00"],
                166,
            ),
        },
    ),
    "minutely": (
        ("every 1m", "2026-03-02 09:00", "2026-03-09 09:00:30"),
        {
            ONE: (["03-09 09:00"], 10_080),
            ALL: (["03-09 09:00"], 10_080),
            SKIP: (["03-09 09:00"], 10_080),
            CatchUp(CatchUpMode.ALL, window=180.0): (
                ["03-09 08:58", "03-09 08:59", "03-09 09:00"],
                10_078,
            ),
        },
    ),
    "once, a week ago": (
        ("2026-03-02T09:00", "2026-03-02 09:00", "2026-03-09 10:00"),
        {
            ONE: ([], 1),
            ALL: ([], 1),
            SKIP: ([], 1),
            CatchUp(CatchUpMode.ONE, window=2 * WEEK): (["03-02 09:00"], 0),
        },
    ),
    "once, less than a day ago": (
        ("2026-03-08T11:00", "2026-03-08 11:00", "2026-03-09 10:00"),
        {ONE: (["03-08 11:00"], 0), ALL: (["03-08 11:00"], 0), SKIP: ([], 1)},
    ),
}


@pytest.mark.parametrize("case", DOWN_FOR_A_WEEK)
def test_after_a_week_of_nobody_there_exactly_what_the_policy_says(case: str) -> None:
    (rule, due, back), policies = DOWN_FOR_A_WEEK[case]
    now = utc(back)

    for policy, (expected, number) in policies.items():
        series = series_of(rule, due, catch_up=policy, overlap=Overlap.ALLOW)
        decision = decide(series, now, {})

        assert [at for at, _ in fired(decision)] == expected, policy
        assert missed(decision) == number, policy
        assert all(
            (fire.origin is CAUGHT_UP) == (now - fire.at > timedelta(minutes=1))
            for fire in decision.fires
        )
        assert decision.series.next_at is None or decision.series.next_at > now


def test_runs_that_are_missed_by_the_thousand_are_told_of_together() -> None:
    minutely = series_of("every 1m", "2026-03-02 09:00")

    decision = decide(minutely, utc("2026-03-09 09:00:30"), {})

    first, *others = decision.notes
    assert first.number == 9_980
    assert (first.at, first.until) == (utc("2026-03-02 09:00"), utc("2026-03-09 07:19"))
    assert len(others) == 100
    assert {note.number for note in others} == {1}


def test_after_years_of_nobody_there_work_is_bounded_and_the_last_day_is_exact() -> None:
    secondly = series_of(
        "every 1s", "2024-03-02 09:00", overlap=Overlap.ALLOW, catch_up=CatchUp(CatchUpMode.ALL, 3)
    )

    decision = decide(secondly, utc("2026-03-09 09:00"), {})

    assert len(decision.fires) == 61  # those of the last minute are in time
    assert decision.notes[0].number == 100_000
    assert decision.notes[0].until == utc("2026-03-08 09:00")
    assert decision.series.next_at == utc("2026-03-09 09:00:01")


def test_runs_that_are_a_little_late_are_not_missed_for_the_next_one() -> None:
    quick = series_of("every 5s", "2026-03-02 09:00", overlap=Overlap.ALLOW)

    decision = decide(quick, utc("2026-03-02 09:00:12"), {})

    assert [fire.at.second for fire in decision.fires] == [0, 5, 10]
    assert decision.notes == []


# The run before has not ended.

OVERLAPS = {
    # policy and what is open: fired, skipped, cancelled
    (Overlap.SKIP, ()): (["03-02 10:00"], [], []),
    (Overlap.SKIP, (FIRST,)): ([], ["03-02 10:00"], []),
    (Overlap.QUEUE_ONE, (FIRST,)): (["03-02 10:00"], [], []),
    (Overlap.QUEUE_ONE, (FIRST, SECOND)): ([], ["03-02 10:00"], []),
    (Overlap.QUEUE_ALL, (FIRST, SECOND)): (["03-02 10:00"], [], []),
    (Overlap.CANCEL_RUNNING, (FIRST,)): (["03-02 10:00"], [], [FIRST]),
    (Overlap.CANCEL_RUNNING, ()): (["03-02 10:00"], [], []),
    (Overlap.ALLOW, (FIRST, SECOND)): (["03-02 10:00"], [], []),
}


@pytest.mark.parametrize(("policy", "open_tasks"), OVERLAPS)
def test_what_becomes_of_a_run_while_the_one_before_has_not_ended(
    policy: Overlap, open_tasks: tuple[TaskId, ...]
) -> None:
    hourly = series_of("every 1h", "2026-03-02 10:00", overlap=policy, open=open_tasks)

    decision = decide(hourly, utc("2026-03-02 10:00"), dict.fromkeys(open_tasks, State.RUNNING))

    run, let_go, cancelled = OVERLAPS[policy, open_tasks]
    assert [at for at, _ in fired(decision)] == run
    assert skipped(decision) == let_go
    assert decision.cancels == cancelled
    assert decision.series.next_at == utc("2026-03-02 11:00")


@pytest.mark.parametrize("state", State)
def test_only_a_task_that_has_not_ended_is_in_the_way(state: State) -> None:
    hourly = series_of("every 1h", "2026-03-02 10:00", open=(FIRST,))

    decision = decide(hourly, utc("2026-03-02 10:00"), {FIRST: state})

    has_ended = state in {State.COMPLETED, State.FAILED, State.DEAD_LETTER, State.CANCELLED}
    assert bool(decision.fires) == has_ended
    assert decision.series.open == (() if has_ended else (FIRST,))


def test_a_task_that_is_not_kept_any_more_is_in_nobodys_way() -> None:
    hourly = series_of("every 1h", "2026-03-02 10:00", open=(FIRST,))

    decision = decide(hourly, utc("2026-03-02 10:00"), {})

    assert len(decision.fires) == 1


SEVERAL_DUE = {
    Overlap.SKIP: (["07:00"], ["08:00", "09:00"]),
    Overlap.QUEUE_ONE: (["07:00", "08:00"], ["09:00"]),
    Overlap.QUEUE_ALL: (["07:00", "08:00", "09:00"], []),
    Overlap.ALLOW: (["07:00", "08:00", "09:00"], []),
    Overlap.CANCEL_RUNNING: (["09:00"], ["07:00", "08:00"]),
}


@pytest.mark.parametrize("policy", Overlap)
def test_every_run_that_is_made_up_for_is_fired_or_told_of(policy: Overlap) -> None:
    catch_up = CatchUp(CatchUpMode.ALL, window=86_400.0)
    hourly = series_of("every 1h", "2026-03-02 07:00", overlap=policy, catch_up=catch_up)

    decision = decide(hourly, utc("2026-03-02 09:30"), {})

    run, let_go = SEVERAL_DUE[policy]
    assert [at[6:] for at, _ in fired(decision)] == run
    assert [at[6:] for at in skipped(decision)] == let_go


# Failures.


def test_a_failed_run_never_ends_the_series() -> None:
    daily = series_of("0 9 * * *", "2026-03-02 09:00", open=(FIRST,))

    decision = decide(daily, utc("2026-03-02 09:00"), {FIRST: State.DEAD_LETTER})

    assert len(decision.fires) == 1
    assert decision.series.status is Status.ACTIVE
    assert decision.series.failures == 1


@pytest.mark.parametrize(
    ("ends", "failures"),
    [
        ([State.FAILED, State.DEAD_LETTER], 4),
        ([State.FAILED, State.COMPLETED], 0),
        ([State.COMPLETED, State.FAILED], 1),
        ([State.CANCELLED, State.FAILED], 3),
    ],
)
def test_failures_are_counted_one_after_another(ends: list[State], failures: int) -> None:
    daily = series_of("0 9 * * *", "2026-03-02 09:00", open=(FIRST, SECOND), failures=2)

    decision = decide(daily, utc("2026-03-02 09:00"), dict(zip((FIRST, SECOND), ends, strict=True)))

    assert decision.series.failures == failures


def failing(failures: int) -> Series:
    return series_of(
        "0 9 * * *",
        "2026-03-02 09:00",
        open=(FIRST,),
        failures=failures,
        pause_after_failures=3,
    )


def test_a_series_that_only_fails_is_paused_with_the_reason() -> None:
    decision = decide(failing(2), utc("2026-03-02 09:00"), {FIRST: State.FAILED})

    assert decision.fires == ()
    assert skipped(decision) == ["03-02 09:00"]
    assert decision.series.status is Status.PAUSED
    assert decision.series.note == "paused after 3 failed runs one after another"
    assert decision.series.due_at is None


def test_one_failure_fewer_and_it_goes_on() -> None:
    decision = decide(failing(1), utc("2026-03-02 09:00"), {FIRST: State.FAILED})

    assert len(decision.fires) == 1
    assert decision.series.status is Status.ACTIVE


def test_who_resumes_a_failing_series_gives_it_a_new_chance() -> None:
    paused = decide(failing(2), utc("2026-03-02 09:00"), {FIRST: State.FAILED}).series

    again = resumed(paused, utc("2026-03-05 12:00"))

    assert again.status is Status.ACTIVE
    assert again.failures == 0
    assert again.note is None
    assert again.next_at == utc("2026-03-06 09:00")


# Skips, pauses, ends.


def test_a_run_that_somebody_skipped_is_left_out_and_told_of() -> None:
    at = utc("2026-03-02 09:00")
    daily = series_of("0 9 * * *", "2026-03-02 09:00", skips=(at, utc("2026-03-04 09:00")))

    decision = decide(daily, at, {})

    assert decision.fires == []
    assert [(note.at, note.reason) for note in decision.notes] == [(at, "skipped on request")]
    assert decision.series.skips == (utc("2026-03-04 09:00"),)
    assert decision.series.next_at == utc("2026-03-03 09:00")


def test_a_skipped_run_is_not_made_up_for_and_the_one_before_it_is() -> None:
    skip = utc("2026-03-02 09:00")
    hourly = series_of(
        "every 1h", "2026-03-02 08:00", skips=(skip,), catch_up=CatchUp(window=86_400.0)
    )

    decision = decide(hourly, utc("2026-03-02 09:30"), {})

    assert fired(decision) == [("03-02 08:00", Origin.CATCH_UP)]
    assert skipped(decision) == ["03-02 09:00"]


def test_a_pause_of_a_while_ends_at_its_time_whoever_looks_later() -> None:
    paused = series_of(
        "0 9 * * *",
        "2026-03-02 09:00",
        status=Status.PAUSED,
        paused_until=utc("2026-03-05 00:00"),
        catch_up=CatchUp(CatchUpMode.ALL, window=WEEK),
        overlap=Overlap.ALLOW,
    )

    in_time = decide(paused, utc("2026-03-05 00:00:01"), {})
    late = decide(paused, utc("2026-03-06 10:00"), {})

    assert in_time.fires == ()
    assert in_time.series.next_at == utc("2026-03-05 09:00")
    assert [at for at, _ in fired(late)] == ["03-05 09:00", "03-06 09:00"]


def test_the_last_run_of_a_finite_rule_completes_the_series() -> None:
    rule = read_rule("FREQ=DAILY;COUNT=2\nDTSTART:20260301T090000")
    series = series_of(rule, "2026-03-02 09:00")

    decision = decide(series, utc("2026-03-02 09:00"), {})

    assert len(decision.fires) == 1
    assert decision.series.status is Status.COMPLETED
    assert decision.series.next_at is None
    assert decision.series.due_at is None


@pytest.mark.parametrize("status", [Status.PAUSED, Status.COMPLETED, Status.FAILED])
def test_a_series_that_is_not_active_is_left_as_it_is(status: Status) -> None:
    series = series_of("0 9 * * *", "2026-03-02 09:00", status=status)

    assert decide(series, utc("2026-03-09 09:00"), {}) == Decision(series)


# Jitter.


def jitters(rule: str, most: float) -> list[tuple[datetime, datetime, datetime]]:
    read, at, found = read_rule(rule), utc("2026-03-02 00:00"), []
    for _ in range(500):
        following = read.next_after(at)
        assert following is not None
        found.append((at, jittered("daily", read, at, most), following))
        at = following
    return found


@pytest.mark.parametrize("rule", ["every 1m", "every 1h", "0 9 * * *", "0 9 1,2,28 * *"])
@pytest.mark.parametrize("most", [0.0, 5.0, 600.0, 86_400.0])
def test_jitter_is_never_early_and_within_a_tenth_of_the_time_to_the_next(
    rule: str, most: float
) -> None:
    for at, starts, following in jitters(rule, most):
        assert at <= starts <= at + min(timedelta(seconds=most), (following - at) / 10)


def test_jitter_is_the_same_for_everybody_and_differs_by_run_and_series() -> None:
    rule, at = read_rule("0 9 * * *"), utc("2026-03-02 09:00")
    names = [f"user-{n}" for n in range(200)]

    drawn = [jittered(name, rule, at, 600.0) for name in names]

    assert drawn == [jittered(name, rule, at, 600.0) for name in names]
    assert len(set(drawn)) == 200
    assert max(drawn) - min(drawn) > timedelta(minutes=8)


def test_a_jittered_run_is_due_then_and_not_before_and_not_late_because_of_it() -> None:
    daily = series_of("0 9 * * *", "2026-03-02 09:00", jitter=3600.0)
    starts = daily.due_at
    assert starts is not None
    assert starts > utc("2026-03-02 09:01")

    before = decide(daily, starts - timedelta(seconds=1), {})
    decision = decide(daily, starts, {})

    assert before.fires == ()
    assert before.series == daily
    assert fired(decision) == [("03-02 09:00", Origin.SCHEDULE)]
