"""Whatever a handler's forks do, every task gets its own result, and nobody pays for another."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from types import ModuleType

import pytest
import pytest_asyncio

from holdfast.core.attempt import Report
from holdfast.core.lifecycle import Released, Succeeded, WorkerLost
from holdfast.core.task import Cause
from holdfast.settings import Settings
from holdfast.testing.eventually import eventually
from holdfast.worker.processes.runner import ProcessRunner
from holdfast.worker.processes.wire import OUTCOME, Frame

from .conftest import SPEC, attempt, is_gone

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def one() -> AsyncIterator[ProcessRunner]:
    """A pool of a single process: whoever comes next comes after the misbehaviour."""
    runner = ProcessRunner(SPEC, Settings.load(), 1)
    yield runner
    await runner.close()


@pytest.mark.parametrize("body", ["forks_and_fails_to_exec", "forks_in_a_coroutine"])
async def test_a_fork_that_fails_to_exec_does_not_serve_on(
    body: str, one: ProcessRunner, bodies: ModuleType
) -> None:
    for number in range(1, 21):
        forked = await one.run(attempt(getattr(bodies, body), number=2 * number))
        assert isinstance(forked, Succeeded)
        sums = await one.run(attempt(bodies.add, a=number, number=2 * number + 1))
        assert sums == Succeeded(str(number + 1).encode())

    assert await one.run(attempt(bodies.whoami)) == forked, "the process itself is unharmed"


@pytest.mark.parametrize(("how", "status"), [("returns", 0), ("exits", 9), ("unseen", 0)])
async def test_a_fork_that_comes_out_of_its_handler_ends_at_once(
    how: str, status: int, one: ProcessRunner, bodies: ModuleType
) -> None:
    # "unseen": a fork made by C code, which runs none of Python's hooks.
    assert await one.run(attempt(bodies.returns_twice, how=how)) == Succeeded(b"%d" % status)


async def test_a_fork_has_no_line_to_the_worker(one: ProcessRunner, bodies: ModuleType) -> None:
    assert await one.run(attempt(bodies.sockets_of_a_fork)) == Succeeded(b"0")


async def test_a_fork_that_speaks_for_the_attempt_is_told_why_not(
    one: ProcessRunner, bodies: ModuleType
) -> None:
    reports: list[Report] = []

    outcome = await one.run(attempt(bodies.speaks_in_a_fork, reports=reports))

    assert isinstance(outcome, Succeeded)
    assert b"is a fork of the process that runs the attempt" in outcome.result
    assert reports == []


@pytest.mark.parametrize("how", ["fork", "spawn"])
async def test_pools_and_programs_still_work_inside_a_handler(
    how: str, one: ProcessRunner, bodies: ModuleType
) -> None:
    assert await one.run(attempt(bodies.uses_a_pool, how=how)) == Succeeded(b"[1,2,3]")
    assert await one.run(attempt(bodies.runs_a_program)) == Succeeded(b'"hello"')


def _another_result() -> str:
    frame = Frame(OUTCOME, {"is": "succeeded"}, b'"stolen"', ("another task", 1))
    return frame.pack().decode("latin-1")


@pytest.mark.parametrize(
    "data",
    ["x", "GET / HTTP/1.1\r\n\r\n", "\x00" * 64, "\xff" * 64, _another_result()],
    ids=["byte", "text", "zeros", "ones", "another's result"],
)
@pytest.mark.parametrize("forks", [False, True], ids=["itself", "in a fork"])
async def test_garbage_on_the_line_costs_the_process_and_no_neighbour(
    data: str, forks: bool, one: ProcessRunner, bodies: ModuleType
) -> None:
    before = await one.run(attempt(bodies.whoami))
    assert isinstance(before, Succeeded)

    handed_back = await one.run(attempt(bodies.writes_garbage, data=data, forks=forks))

    # It might have been the doing of an attempt before it, so this one is not charged…
    assert handed_back == Released()
    await eventually(lambda: is_gone(int(before.result)), within=5)
    assert await one.run(attempt(bodies.add, a=1)) == Succeeded(b"2")


async def test_the_first_attempt_of_a_process_answers_for_its_garbage(
    one: ProcessRunner, bodies: ModuleType
) -> None:
    outcome = await one.run(attempt(bodies.writes_garbage, data="garbage " * 8))

    assert isinstance(outcome, WorkerLost)
    assert "could not be understood" in outcome.error.message


async def test_one_that_was_handed_back_already_answers_for_its_garbage(
    one: ProcessRunner, bodies: ModuleType
) -> None:
    await one.run(attempt(bodies.add, a=1))
    run = attempt(bodies.writes_garbage, data="garbage " * 8)
    run.claim = run.claim._replace(cause=Cause.RELEASED)

    assert isinstance(await one.run(run), WorkerLost)


async def test_a_thread_that_outlives_its_attempt_disturbs_nobody(
    one: ProcessRunner, bodies: ModuleType
) -> None:
    reports: list[Report] = []
    late = [
        await one.run(attempt(bodies.speaks_later, reports=reports, number=n, after=n / 1000))
        for n in range(1, 9)
    ]
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        run = attempt(bodies.add, reports=reports, number=100, a=1)
        assert await one.run(run) == Succeeded(b"2")

    assert set(late) == {await one.run(attempt(bodies.whoami))}
    assert all(report.attempt < 100 for report in reports)
