"""A fork that comes out of a handler ends there: it is no second worker."""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.core.task import State

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def _status(pid: int) -> int:
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


async def test_a_fork_of_a_thread_ends_where_it_comes_out(shop: Workshop) -> None:
    @shop.task(max_retries=0)
    def fails_to_exec() -> int:
        if (pid := os.fork()) == 0:
            os.execvp("no-such-program", ["x"])
        return _status(pid)

    task = await shop.submit(fails_to_exec)
    await shop.drain()

    assert (await shop.get(task)).result == b"1"


@pytest.mark.parametrize("suspends", [False, True])
async def test_a_fork_of_the_event_loop_ends_where_it_comes_out(
    suspends: bool, shop: Workshop
) -> None:
    @shop.task(max_retries=0)
    async def fails_to_exec() -> int:
        if (pid := os.fork()) == 0:
            if suspends:
                await asyncio.sleep(0)  # the fork's next step would be the whole loop's
            os.execvp("no-such-program", ["x"])
        return _status(pid)

    task = await shop.submit(fails_to_exec)
    async with shop.working():
        done = await shop.reaches(task, State.COMPLETED)

    assert done.result == (b"0" if suspends else b"1")
