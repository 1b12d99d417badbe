"""The demo's verdict must catch every kind of lie; each test tells one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from holdfast.cli.demo.journal import DONE, ENTER, KILLED, LEAVE, START, JournalEntry
from holdfast.cli.demo.proof import AcknowledgedTask, Proof, overlapping, prove
from holdfast.cli.demo.run import DemoResult
from holdfast.core.attempt import Attempt, History
from holdfast.core.task import AttemptEnd, Cause, Priority, State, Task, TaskId, WorkerId

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ID = TaskId("0197f3c2-8a51-7cc0-9d4e-1b2c3d4e5f60")


def task(state: State = State.COMPLETED) -> Task:
    return Task(
        id=ID, name="fast", queue="default", priority=Priority.NORMAL, state=state, payload=b"{}",
        created_at=NOW, run_at=NOW, rank=0, attempt=1, charged=0, max_retries=3, crash_count=0,
        cause=Cause.SUBMITTED,
    )  # fmt: skip


def attempt(number: int, ended: AttemptEnd, cause: Cause = Cause.SUBMITTED) -> Attempt:
    return Attempt(
        number=number,
        cause=cause,
        worker_id=WorkerId("w"),
        started_at=NOW,
        ended_at=NOW + timedelta(seconds=1),
        ended=ended,
    )


def record(*attempts: Attempt, state: State = State.COMPLETED) -> AcknowledgedTask:
    return AcknowledgedTask(
        expected=State.COMPLETED,
        task=task(state),
        history=History(attempts=attempts, events=()),
    )


def line(
    event: str, number: int = 1, *, pid: int = 1, detail: str = "-", who: str = ID
) -> JournalEntry:
    return JournalEntry(event, pid, "fast", who, number, detail)


def verdict(of: AcknowledgedTask, *journal: JournalEntry) -> Proof:
    return prove({ID: of}, journal)


def test_an_ordinary_run_holds() -> None:
    proof = verdict(record(attempt(1, AttemptEnd.COMPLETED)), line(START), line(DONE))

    assert proof.held
    assert (proof.submitted, proof.completed, proof.lost, proof.recorded_twice) == (1, 1, 0, 0)


def test_a_start_after_a_lost_worker_holds_and_is_counted_by_its_cause() -> None:
    proof = verdict(
        record(
            attempt(1, AttemptEnd.WORKER_LOST), attempt(2, AttemptEnd.COMPLETED, Cause.WORKER_LOST)
        ),
        line(START),
        line(START, 2),
        line(DONE, 2),
    )

    assert proof.held
    assert proof.second_starts == {"worker_lost": 1}


def test_a_task_that_is_gone_is_lost() -> None:
    proof = verdict(AcknowledgedTask(expected=State.COMPLETED, task=None, history=None))

    assert proof.lost == 1
    assert "acknowledged and is gone" in proof.broken_promises[0]


def test_a_task_that_never_ended_is_lost() -> None:
    proof = verdict(record(state=State.QUEUED))

    assert proof.lost == 1
    assert not proof.held


def test_a_task_that_ended_otherwise_than_meant_breaks_the_promise() -> None:
    proof = verdict(record(attempt(1, AttemptEnd.ERROR), state=State.DEAD_LETTER), line(START))

    assert "is dead_letter, expected completed" in proof.broken_promises[0]


def test_a_completed_task_that_ran_again_is_recorded_twice() -> None:
    proof = verdict(
        record(
            attempt(1, AttemptEnd.COMPLETED), attempt(2, AttemptEnd.COMPLETED, Cause.WORKER_LOST)
        ),
        line(START),
        line(DONE),
        line(START, 2),
        line(DONE, 2),
    )

    assert proof.recorded_twice == 1
    assert not proof.held


def test_a_second_start_without_a_cause_breaks_the_promise() -> None:
    proof = verdict(
        record(attempt(1, AttemptEnd.ERROR), attempt(2, AttemptEnd.COMPLETED)),
        line(START),
        line(START, 2),
        line(DONE, 2),
    )

    assert "attempt 2 has cause submitted" in proof.broken_promises[0]


def test_one_attempt_started_by_two_workers_breaks_the_promise() -> None:
    proof = verdict(
        record(attempt(1, AttemptEnd.COMPLETED)), line(START), line(START, pid=2), line(DONE)
    )

    assert "was started 2 times" in proof.broken_promises[0]


def test_a_body_that_the_history_does_not_know_breaks_the_promise() -> None:
    proof = verdict(
        record(attempt(1, AttemptEnd.COMPLETED)), line(START), line(DONE), line(START, 2)
    )

    assert "the history does not know it" in proof.broken_promises[0]


def test_a_completion_whose_body_never_ran_breaks_the_promise() -> None:
    proof = verdict(record(attempt(1, AttemptEnd.COMPLETED)))

    assert len(proof.broken_promises) == 2


def test_two_tasks_inside_one_lock_overlap() -> None:
    journal = [
        line(ENTER, detail="a", who="first"),
        line(ENTER, detail="a", who="second", pid=2),
        line(LEAVE, detail="a", who="first"),
    ]

    assert list(overlapping(journal)) == [("a", "first", "second")]


def test_tasks_one_after_the_other_or_on_other_keys_do_not_overlap() -> None:
    journal = [
        line(ENTER, detail="a", who="first"),
        line(ENTER, detail="b", who="other"),
        line(LEAVE, detail="a", who="first"),
        line(ENTER, detail="a", who="second", pid=2),
    ]

    assert list(overlapping(journal)) == []


def test_a_lock_whose_holder_was_killed_is_free_only_after_the_kill() -> None:
    held = line(ENTER, detail="a", who="first", pid=7)
    taken = line(ENTER, detail="a", who="second", pid=8)
    kill = JournalEntry(KILLED, 7, "worker", "-", 0, "-")

    assert list(overlapping([held, kill, taken])) == []
    assert list(overlapping([held, taken, kill])) == [("a", "first", "second")]


def test_a_broken_promise_or_a_worker_that_left_badly_makes_the_demo_fail() -> None:
    good = verdict(record(attempt(1, AttemptEnd.COMPLETED)), line(START), line(DONE))
    bad = verdict(record(state=State.QUEUED))

    assert outcome(good).held
    assert not outcome(bad).held
    assert not outcome(good, exit_codes=(0, 1)).held


def outcome(proof: Proof, exit_codes: tuple[int, ...] = (0, 0)) -> DemoResult:
    return DemoResult(
        proof=proof,
        seconds=1.0,
        killed_pid=1,
        held_by_killed=1,
        found_lost_after_seconds=0.1,
        worker_exit_codes=exit_codes,
    )
