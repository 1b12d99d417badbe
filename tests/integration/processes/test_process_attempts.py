"""What an attempt in a process gives back: results, errors, reports; nothing mixed up."""

from __future__ import annotations

import asyncio
from types import ModuleType

import pytest

from holdfast.core.attempt import Report
from holdfast.core.lifecycle import Failed, Released, Succeeded, Unfit
from holdfast.core.task import Cost, Progress, Reason
from holdfast.settings import Settings
from holdfast.testing.eventually import eventually
from holdfast.worker.processes import runner as module
from holdfast.worker.processes.runner import ProcessRunner

from .conftest import SPEC, attempt, is_gone

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_sync_handler_returns_its_result(pool: ProcessRunner, bodies: ModuleType) -> None:
    assert await pool.run(attempt(bodies.add, a=1, b=2)) == Succeeded(b"3")


async def test_an_async_handler_returns_its_result(pool: ProcessRunner, bodies: ModuleType) -> None:
    assert await pool.run(attempt(bodies.add_async, a=1, b=2)) == Succeeded(b"3")


async def test_a_process_is_used_again(pool: ProcessRunner, bodies: ModuleType) -> None:
    first = await pool.run(attempt(bodies.whoami))
    second = await pool.run(attempt(bodies.whoami))

    assert first == second


async def test_many_at_once_get_their_own_answers(pool: ProcessRunner, bodies: ModuleType) -> None:
    answers = await asyncio.gather(*(pool.run(attempt(bodies.add, a=n)) for n in range(40)))

    assert answers == [Succeeded(str(n + 1).encode()) for n in range(40)]


async def test_what_a_handler_prints_does_not_disturb_the_line(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    assert await pool.run(attempt(bodies.noisy)) == Succeeded(b'"quiet"')


async def test_progress_logs_and_costs_arrive_fenced(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    reports: list[Report] = []
    run = attempt(bodies.talkative, reports=reports, text="hello\nworld")

    outcome = await pool.run(run)

    fence = run.claim.task_id, run.claim.attempt, run.claim.worker_id
    assert outcome == Succeeded(f'"{run.claim.task_id} 3"'.encode())
    assert reports == [
        Report(*fence, progress=Progress(done=1.0, total=4.0, message="begun")),
        Report(*fence, logs=("hello\nworld",)),
        Report(*fence, cost=Cost(units=2.5, tokens_in=3)),
    ]


async def test_variables_of_one_attempt_are_not_seen_by_the_next(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    answers = [await pool.run(attempt(bodies.stain)) for _ in range(2)]

    assert answers == [Succeeded(b'"clean"')] * 2


@pytest.mark.parametrize(
    ("kind", "error", "retriable"),
    [
        ("wrong", "ValueError", True),
        ("fatal", "Fatal", False),
        ("exit", "SystemExit", True),
        ("interrupt", "KeyboardInterrupt", True),
    ],
)
async def test_an_exception_becomes_an_error_and_the_process_lives_on(
    kind: str, error: str, retriable: bool, pool: ProcessRunner, bodies: ModuleType
) -> None:
    process = await pool.run(attempt(bodies.whoami))

    outcome = await pool.run(attempt(bodies.fail, kind=kind))

    assert isinstance(outcome, Failed)
    assert (outcome.error.type, outcome.error.retriable) == (error, retriable)
    assert "bodies.py" in (outcome.error.traceback or "")
    assert "holdfast/worker" not in (outcome.error.traceback or "")
    assert await pool.run(attempt(bodies.whoami)) == process


async def test_a_secret_is_stars_in_the_error(pool: ProcessRunner, bodies: ModuleType) -> None:
    outcome = await pool.run(attempt(bodies.leak, password="hunter2"))

    assert isinstance(outcome, Failed)
    assert outcome.error.message == "not **********"
    assert "hunter2" not in (outcome.error.traceback or "")


async def test_a_handler_may_ask_for_a_retry_or_to_be_run_later(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    retry = await pool.run(attempt(bodies.fail, kind="retry"))
    snooze = await pool.run(attempt(bodies.fail, kind="snooze"))

    assert isinstance(retry, Failed)
    assert retry.retry_after == 7
    assert snooze == Released(delay=9)


async def test_arguments_that_do_not_fit_are_left_to_others(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    outcome = await pool.run(attempt(bodies.add, a="many"))

    assert isinstance(outcome, Unfit)
    assert (outcome.error.type, outcome.reason) == ("UnfitArguments", Reason.UNFIT_ARGUMENTS)
    assert (outcome.again_in, outcome.needs) == (1.0, None)


async def test_a_result_that_cannot_be_stored_is_an_error(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    outcome = await pool.run(attempt(bodies.unstorable))

    assert isinstance(outcome, Failed)
    assert "cannot be stored" in outcome.error.message


async def test_a_forked_helper_of_a_handler_still_ends_at_sigterm(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    assert await pool.run(attempt(bodies.terminates_a_fork, timeout=20)) == Succeeded(b"-15")


async def test_an_app_that_cannot_be_imported_fails_the_attempt_with_the_reason(
    bodies: ModuleType,
) -> None:
    runner = ProcessRunner("no_such_module:app", Settings.load(), 2)

    outcome = await runner.run(attempt(bodies.add, a=1))
    await runner.close()

    assert isinstance(outcome, Failed)
    assert outcome.error.retriable
    assert "no_such_module" in outcome.error.message


async def test_a_worker_that_does_not_know_its_app_says_what_to_do(bodies: ModuleType) -> None:
    runner = ProcessRunner(None, Settings.load(), 2)

    outcome = await runner.run(attempt(bodies.add, a=1))

    assert isinstance(outcome, Failed)
    assert "holdfast worker module:app" in outcome.error.message


async def test_processes_that_nobody_needs_any_more_are_ended(
    bodies: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEP", 1)
    monkeypatch.setattr(module, "IDLE_LIMIT", 0.05)
    runner = ProcessRunner(SPEC, Settings.load(), 3)

    outcomes = await asyncio.gather(*(runner.run(attempt(bodies.whoami)) for _ in range(3)))
    pids = {int(outcome.result) for outcome in outcomes if isinstance(outcome, Succeeded)}

    assert len(pids) == 3
    await eventually(lambda: sum(not is_gone(pid) for pid in pids) == 1)
    await runner.close()
    assert all(is_gone(pid) for pid in pids)
