"""The state machine: legal moves only, charges that add up, and an end to every life."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.lifecycle import (
    CANCELLABLE_AT_ONCE,
    MOVES,
    OTHER_WORDS,
    REQUEUEABLE,
    TERMINAL,
    UNFINISHED,
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    Unfit,
    WorkerLost,
    cancelled_instead,
    is_terminal,
    settle,
)
from holdfast.core.task import AttemptEnd, Cause, Priority, Reason, State, TaskId, WorkerId
from holdfast.testing.factories import task_error

NOT_RETRIABLE = task_error(retriable=False)

outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Succeeded(b"1")),
    st.builds(Failed, st.just(task_error()), st.none() | st.floats(-10, 1e6)),
    st.just(Failed(NOT_RETRIABLE)),
    st.just(TimedOut(task_error())),
    st.just(WorkerLost(task_error())),
    st.just(Stopped()),
    st.builds(Released, st.floats(-10, 1e6)),
    st.builds(
        Unfit,
        st.just(task_error()),
        st.just(Reason.UNFIT_ARGUMENTS),
        st.none() | st.floats(-10, 1e6),
        st.none() | st.just("task:demo"),
    ),
)


def make_claim(
    *,
    attempt: int = 1,
    charged: int = 0,
    max_retries: int = 3,
    crash_count: int = 0,
    cancel_requested: bool = False,
) -> Claim:
    return Claim(
        task_id=TaskId("t"),
        attempt=attempt,
        worker_id=WorkerId("w"),
        name="demo",
        queue="default",
        priority=Priority.NORMAL,
        payload=b"{}",
        charged=charged,
        max_retries=max_retries,
        crash_count=crash_count,
        timeout=None,
        retry=None,
        lock=None,
        fence=None,
        cause=Cause.SUBMITTED,
        trace=None,
        owner=None,
        cancel_requested=cancel_requested,
    )


claims = st.builds(
    make_claim,
    attempt=st.integers(1, 50),
    charged=st.integers(0, 5),
    max_retries=st.integers(0, 5),
    crash_count=st.integers(0, 3),
    cancel_requested=st.booleans(),
)


def settled(claim: Claim, outcome: Outcome, *, crash_limit: int = 3) -> Settlement:
    return settle(claim, outcome, backoff=lambda n: 10.0 * n, crash_limit=crash_limit)


class TestTheMap:
    def test_every_state_has_its_moves(self) -> None:
        assert set(MOVES) == set(State)

    def test_no_state_moves_to_itself(self) -> None:
        assert all(state not in moves for state, moves in MOVES.items())

    def test_every_state_is_reached_from_queued(self) -> None:
        seen = {State.QUEUED}
        while more := {to for state in seen for to in MOVES[state]} - seen:
            seen |= more

        assert seen == set(State)

    def test_an_ended_task_moves_only_back_into_line(self) -> None:
        assert {frozenset(MOVES[state]) for state in TERMINAL} == {
            frozenset({State.QUEUED, State.BLOCKED})
        }

    def test_terminal_and_unfinished_share_out_the_states(self) -> None:
        assert set(State) == TERMINAL | UNFINISHED
        assert not TERMINAL & UNFINISHED
        assert [state for state in State if is_terminal(state)] == [
            State.COMPLETED,
            State.FAILED,
            State.CANCELLED,
            State.DEAD_LETTER,
        ]

    def test_what_is_cancelled_at_once_may_become_cancelled(self) -> None:
        assert {s for s in UNFINISHED if State.CANCELLED in MOVES[s]} == CANCELLABLE_AT_ONCE | {
            State.RUNNING
        }

    def test_what_an_operator_may_start_again_may_become_queued(self) -> None:
        assert all(State.QUEUED in MOVES[state] for state in REQUEUEABLE - {State.QUEUED})
        assert TERMINAL | {State.QUEUED, State.RETRYING} == REQUEUEABLE

    def test_other_products_words_are_not_ours(self) -> None:
        assert not set(OTHER_WORDS) & {state.value for state in State}


class TestOneAttempt:
    def test_a_success_completes_and_charges_nothing(self) -> None:
        assert settled(make_claim(charged=2), Succeeded(b"7")) == Settlement(
            TaskId("t"), 1, WorkerId("w"), State.COMPLETED, AttemptEnd.COMPLETED, 2, 0, result=b"7"
        )

    def test_a_failure_with_retries_left_waits_for_the_backoff_of_its_number(self) -> None:
        found = settled(make_claim(charged=1, max_retries=2), Failed(task_error()))

        assert (found.state, found.ended, found.cause) == (
            State.RETRYING,
            AttemptEnd.ERROR,
            Cause.RETRY,
        )
        assert (found.charged, found.delay, found.error) == (2, 20.0, task_error())

    def test_a_failure_without_retries_left_is_a_dead_letter(self) -> None:
        found = settled(make_claim(charged=2, max_retries=2), Failed(task_error()))

        assert (found.state, found.reason) == (State.DEAD_LETTER, Reason.RETRIES_EXHAUSTED)
        assert (found.charged, found.cause, found.delay) == (3, None, 0.0)

    def test_a_handlers_own_delay_wins_over_the_backoff(self) -> None:
        assert settled(make_claim(), Failed(task_error(), retry_after=1.5)).delay == 1.5

    def test_a_handlers_own_delay_of_zero_is_a_delay(self) -> None:
        assert settled(make_claim(), Failed(task_error(), retry_after=0.0)).delay == 0.0

    def test_an_error_that_is_not_retriable_fails_at_once(self) -> None:
        found = settled(make_claim(max_retries=9), Failed(NOT_RETRIABLE, retry_after=1.0))

        assert (found.state, found.reason, found.charged) == (
            State.FAILED,
            Reason.NOT_RETRIABLE,
            1,
        )

    def test_a_timeout_is_retried_and_names_itself(self) -> None:
        found = settled(make_claim(), TimedOut(task_error()))

        assert (found.state, found.ended) == (State.RETRYING, AttemptEnd.TIMEOUT)
        assert (found.cause, found.charged) == (Cause.TIMEOUT, 1)

    def test_a_last_timeout_is_a_dead_letter_by_timeout(self) -> None:
        found = settled(make_claim(max_retries=0), TimedOut(task_error()))

        assert (found.state, found.reason) == (State.DEAD_LETTER, Reason.TIMEOUT)

    def test_a_lost_worker_charges_a_crash_and_no_retry(self) -> None:
        found = settled(make_claim(charged=3, max_retries=3), WorkerLost(task_error()))

        assert (found.state, found.ended, found.cause) == (
            State.QUEUED,
            AttemptEnd.WORKER_LOST,
            Cause.WORKER_LOST,
        )
        assert (found.charged, found.crash_count, found.delay) == (3, 1, 0.0)

    def test_the_last_crash_is_poison_whatever_retries_are_left(self) -> None:
        found = settled(make_claim(max_retries=99, crash_count=2), WorkerLost(task_error()))

        assert (found.state, found.reason) == (State.DEAD_LETTER, Reason.POISON)
        assert (found.crash_count, found.charged) == (3, 0)

    def test_a_crash_of_a_task_that_was_asked_to_stop_cancels_it(self) -> None:
        claim = make_claim(cancel_requested=True, crash_count=2)

        found = settled(claim, WorkerLost(task_error()))

        assert (found.state, found.reason, found.crash_count) == (
            State.CANCELLED,
            Reason.CANCELLED,
            2,
        )

    def test_a_stopped_attempt_cancels_the_task(self) -> None:
        found = settled(make_claim(), Stopped())

        assert (found.state, found.ended, found.reason) == (
            State.CANCELLED,
            AttemptEnd.CANCELLED,
            Reason.CANCELLED,
        )

    def test_a_released_task_is_queued_and_nothing_is_charged(self) -> None:
        found = settled(make_claim(charged=1, crash_count=1), Released(30.0))

        assert (found.state, found.ended, found.cause) == (
            State.QUEUED,
            AttemptEnd.RELEASED,
            Cause.RELEASED,
        )
        assert (found.charged, found.crash_count, found.delay) == (1, 1, 30.0)


class TestEveryAttempt:
    @given(claims, outcomes, st.integers(1, 5))
    def test_a_settlement_is_a_legal_move_with_sound_numbers(
        self, claim: Claim, outcome: Outcome, crash_limit: int
    ) -> None:
        found = settled(claim, outcome, crash_limit=crash_limit)

        assert found.state in MOVES[State.RUNNING]
        assert found[:3] == (claim.task_id, claim.attempt, claim.worker_id)
        assert found.charged - claim.charged in (0, 1)
        assert found.crash_count - claim.crash_count in (0, 1)
        assert found.delay >= 0

    @given(claims, outcomes)
    def test_a_task_has_a_cause_for_its_next_attempt_or_has_ended(
        self, claim: Claim, outcome: Outcome
    ) -> None:
        found = settled(claim, outcome)

        assert (found.cause is None) == (found.state in TERMINAL)
        assert found.cause is not Cause.SUBMITTED
        if found.state in TERMINAL:
            assert found.delay == 0
        if found.state not in TERMINAL:
            assert (found.result, found.reason) == (None, None)

    @given(claims, outcomes)
    def test_only_errors_and_timeouts_charge(self, claim: Claim, outcome: Outcome) -> None:
        found = settled(claim, outcome)

        charged = found.ended in (AttemptEnd.ERROR, AttemptEnd.TIMEOUT)
        assert found.charged == claim.charged + charged

    @given(claims, outcomes)
    def test_a_cancel_request_turns_only_another_attempt_into_the_end(
        self, claim: Claim, outcome: Outcome
    ) -> None:
        found = settled(claim, outcome)

        instead = cancelled_instead(found)

        if found.state in TERMINAL:
            assert instead == found
        else:
            assert instead == found._replace(
                state=State.CANCELLED, delay=0.0, cause=None, reason=Reason.CANCELLED, needs=None
            )
        assert cancelled_instead(instead) == instead


class TestWholeLives:
    @given(
        st.integers(0, 6),
        st.lists(
            st.sampled_from(
                [Failed(task_error()), TimedOut(task_error()), Released(), WorkerLost(task_error())]
            ),
            min_size=60,
            max_size=60,
        ),
    )
    def test_a_task_starts_at_most_max_retries_plus_one_times_on_its_own_account(
        self, max_retries: int, course: list[Outcome]
    ) -> None:
        claim = make_claim(max_retries=max_retries)
        charged = 0

        for outcome in course:
            found = settled(claim, outcome, crash_limit=1_000)
            charged += isinstance(outcome, Failed | TimedOut)
            assert (found.state is State.DEAD_LETTER) == (charged == max_retries + 1)
            if found.state in TERMINAL:
                return
            claim = claim._replace(attempt=claim.attempt + 1, charged=found.charged)

    @pytest.mark.parametrize("crash_limit", [1, 2, 3, 10])
    def test_a_task_that_kills_its_workers_ends_after_the_crash_limit(
        self, crash_limit: int
    ) -> None:
        claim = make_claim(max_retries=1_000)

        for death in range(1, crash_limit + 1):
            found = settled(claim, WorkerLost(task_error()), crash_limit=crash_limit)
            assert (found.state is State.DEAD_LETTER) == (death == crash_limit)
            claim = claim._replace(attempt=claim.attempt + 1, crash_count=found.crash_count)
