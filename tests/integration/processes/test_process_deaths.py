"""Processes that die or grow too large cost one attempt, never the worker or a neighbour."""

from __future__ import annotations

import asyncio
import os
import signal
from types import ModuleType

import pytest

from holdfast.core.lifecycle import Failed, Succeeded, WorkerLost
from holdfast.testing.eventually import eventually
from holdfast.worker.processes.runner import ProcessRunner

from .conftest import attempt, is_gone

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("segfault", "signal 11 (SIGSEGV)"),
        ("exit", "exited with code 7"),
        ("kill", "signal 9 (SIGKILL)"),
    ],
)
async def test_a_dead_process_is_the_loss_of_one_attempt(
    how: str, words: str, pool: ProcessRunner, bodies: ModuleType
) -> None:
    lost, neighbour = await asyncio.gather(
        pool.run(attempt(bodies.dies, how=how)), pool.run(attempt(bodies.add, a=1))
    )

    assert isinstance(lost, WorkerLost)
    assert words in lost.error.message
    assert neighbour == Succeeded(b"2")
    assert await pool.run(attempt(bodies.add, a=2)) == Succeeded(b"3")


async def test_an_idle_process_that_was_killed_is_replaced(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    outcome = await pool.run(attempt(bodies.whoami))
    assert isinstance(outcome, Succeeded)
    os.kill(int(outcome.result), signal.SIGKILL)
    # Waited for without a turn of the loop: nothing has told the pool yet.
    os.waitid(os.P_PID, int(outcome.result), os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222

    again = await pool.run(attempt(bodies.whoami))

    assert isinstance(again, Succeeded)
    assert again != outcome


async def test_memory_within_the_limit_is_no_matter(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    assert await pool.run(attempt(bodies.takes_memory, mib=20)) == Succeeded(b"20")


async def test_an_attempt_that_grows_over_its_memory_limit_is_killed(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    outcome = await pool.run(attempt(bodies.takes_memory, mib=110, seconds=20))

    assert isinstance(outcome, Failed)
    assert outcome.error.type == "MemoryError"
    assert "memory_limit of 64 MiB" in outcome.error.message


async def test_a_sudden_demand_far_over_the_limit_is_refused_by_the_kernel(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    outcome = await pool.run(attempt(bodies.asks_for_memory, gib=8))

    assert isinstance(outcome, Failed)
    assert outcome.error.type == "MemoryError"
    assert "memory_limit of 64 MiB" in outcome.error.message


async def test_a_process_that_stays_bloated_is_replaced(
    pool: ProcessRunner, bodies: ModuleType
) -> None:
    bloated = await pool.run(attempt(bodies.keeps_memory, mib=150))
    assert isinstance(bloated, Succeeded)

    await eventually(lambda: is_gone(int(bloated.result)), within=5)
