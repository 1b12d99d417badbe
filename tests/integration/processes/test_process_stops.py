"""Timeouts, cancels and drains end the body for real, whatever it does, within a second."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import ModuleType

import pytest

from holdfast.core.lifecycle import Outcome, Released, Stopped, Succeeded, TimedOut
from holdfast.settings import Settings
from holdfast.testing.eventually import eventually
from holdfast.worker.processes.runner import ProcessRunner
from holdfast.worker.run import Run, StopReason

from .bodies import STOPPABLE
from .conftest import SPEC, attempt, is_gone, pid_in

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = [task.name.rpartition(".")[2] for task in STOPPABLE]


async def begin(pool: ProcessRunner, run: Run, file: Path) -> tuple[asyncio.Future[Outcome], int]:
    """Start the attempt and wait until its body runs; returns the body's pid too."""
    running = asyncio.ensure_future(pool.run(run))
    await eventually(lambda: running.done() or pid_in(file), within=30)
    return running, pid_in(file)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_timeout_stops(
    kind: str, pool: ProcessRunner, bodies: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    run = attempt(getattr(bodies, kind), timeout=0.4, file=str(file))

    running, pid = await begin(pool, run, file)
    outcome = await running
    late = time.monotonic() - (run.deadline or 0)

    assert isinstance(outcome, TimedOut)
    assert "0.4 s" in outcome.error.message
    assert is_gone(pid)
    assert late < 1
    assert await pool.run(attempt(bodies.add, a=1)) == Succeeded(b"2")


@pytest.mark.parametrize("kind", ["sleeps", "holds_the_gil", "waits"])
@pytest.mark.parametrize(
    ("reason", "expected"),
    [(StopReason.CANCELLED, Stopped()), (StopReason.DRAINED, Released())],
)
async def test_a_stop_from_outside_ends(
    kind: str,
    reason: StopReason,
    expected: Outcome,
    pool: ProcessRunner,
    bodies: ModuleType,
    tmp_path: Path,
) -> None:
    file = tmp_path / "pid"
    run = attempt(getattr(bodies, kind), file=str(file))
    running, pid = await begin(pool, run, file)

    asked = time.monotonic()
    run.stop(reason)
    outcome = await running

    assert outcome == expected
    assert is_gone(pid)
    assert time.monotonic() - asked < 1


@pytest.mark.parametrize(
    ("reason", "note"),
    [(StopReason.TIMED_OUT, "out of time"), (StopReason.CANCELLED, "cancelled")],
)
async def test_a_handler_may_clean_up_when_it_is_stopped(
    reason: StopReason, note: str, pool: ProcessRunner, bodies: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    run = attempt(bodies.cleans_up, file=str(file), note=str(tmp_path / "note"))
    running, _ = await begin(pool, run, file)

    run.stop(reason)
    await running

    assert (tmp_path / "note").read_text() == note


@pytest.mark.parametrize("kind", ["tidies", "tidies_async"])
@pytest.mark.parametrize("reason", [StopReason.TIMED_OUT, StopReason.CANCELLED])
async def test_a_handler_that_looks_is_asked_before_it_is_interrupted(
    kind: str, reason: StopReason, pool: ProcessRunner, bodies: ModuleType, tmp_path: Path
) -> None:
    file, note = tmp_path / "pid", tmp_path / "note"
    run = attempt(getattr(bodies, kind), grace=5.0, file=str(file), note=str(note))
    running, pid = await begin(pool, run, file)

    run.stop(reason)
    outcome = await running

    assert note.read_text() == "tidy"
    assert isinstance(outcome, TimedOut if reason is StopReason.TIMED_OUT else Stopped)
    assert not is_gone(pid), "it ended by itself, so its process serves on"
    assert await pool.run(attempt(bodies.add, a=1)) == Succeeded(b"2")


async def test_a_handler_that_looks_and_goes_on_is_killed_after_its_grace(
    pool: ProcessRunner, bodies: ModuleType, tmp_path: Path
) -> None:
    file, note = tmp_path / "pid", tmp_path / "note"
    run = attempt(bodies.tidies, grace=0.1, file=str(file), note=str(note))
    running, pid = await begin(pool, run, file)

    run.stop(StopReason.CANCELLED)
    outcome = await running

    assert outcome == Stopped()
    assert is_gone(pid)
    assert not note.exists()


async def test_a_leaving_worker_asks_and_hears_that_the_handler_has_seen_it(
    pool: ProcessRunner, bodies: ModuleType, tmp_path: Path
) -> None:
    file, note = tmp_path / "pid", tmp_path / "note"
    run = attempt(bodies.tidies, file=str(file), note=str(note))
    running, _ = await begin(pool, run, file)

    run.stopping.ask()
    await running

    assert note.read_text() == "tidy"
    assert run.left_because_asked()


async def test_a_timeout_shows_where_the_handler_was(
    pool: ProcessRunner, bodies: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    run = attempt(bodies.sleeps, timeout=0.3, file=str(file))

    running, _ = await begin(pool, run, file)
    outcome = await running

    assert isinstance(outcome, TimedOut)
    assert "time.sleep(60)" in (outcome.error.traceback or "")


async def test_extend_moves_the_deadline(pool: ProcessRunner, bodies: ModuleType) -> None:
    outcome = await pool.run(attempt(bodies.extends, timeout=0.4))

    assert outcome == Succeeded(b'"had the time"')


async def test_what_the_handler_started_is_killed_with_it(
    pool: ProcessRunner, bodies: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    run = attempt(bodies.starts_a_program, timeout=0.4, file=str(file))

    running, program = await begin(pool, run, file)
    await running

    await eventually(lambda: is_gone(program), within=1)


async def test_a_stop_while_the_process_is_still_starting_ends_it(bodies: ModuleType) -> None:
    runner = ProcessRunner(SPEC, Settings.load(), 1)
    run = attempt(bodies.add, a=1)
    running = asyncio.ensure_future(runner.run(run))
    await asyncio.sleep(0.01)

    run.stop(StopReason.DRAINED)
    outcome = await running
    await runner.close()

    assert outcome == Released()
