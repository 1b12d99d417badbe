"""A lock that a worker over HTTP lets go is for a worker of another queue, who is woken."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.remote.depot import SOON, Depot, failure, released

from holdfast.core.task import Priority


@pytest.mark.parametrize("how", ["completed", "failed", "released", "overdue"])
async def test_the_poll_of_whoever_is_next_is_answered(depot: Depot, how: str) -> None:
    one, other = await depot.worker(queues=["a"]), await depot.worker(queues=["b"])
    claim = await depot.started(one, lock="k", queue="a", timeout=0.05, max_retries=0)
    waiting = await depot.submit(lock="k", queue="b", priority=Priority.HIGH)
    polling = await depot.parked(other)

    match how:
        case "completed":
            await depot.tell(one, claim)
        case "failed":
            await depot.remote.results(one, [failure(claim)])
        case "released":
            await depot.remote.results(one, [released(claim)])
        case _:
            await asyncio.sleep(0.15)  # its timeout and the grace after it
            await depot.remote.timeouts.tick()

    (got,) = await asyncio.wait_for(polling, SOON)
    assert got.task_id == waiting
