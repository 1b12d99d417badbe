"""What workers over HTTP say counts for breakers, and they get nothing that one keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.integration.remote.depot import SOON, Depot, failure, result

from holdfast import Breaker
from holdfast.asyncio_tools.cancel import end
from holdfast.core.breaker import BreakerState
from holdfast.core.task import State, TaskId
from holdfast.definitions.gate_makers import queue_gates, read_queue
from holdfast.flow import breaker_records
from holdfast.testing.eventually import eventually
from holdfast.worker.maintenance.loop import keep_ticking

BREAKER = Breaker(at_least=4, window="8s", cool_down="1s", key="{bank}")
MAKERS = read_queue("default", {"breaker": BREAKER})
KEY = "queue:default[down]"


@pytest.fixture
async def shop(depot: Depot) -> AsyncIterator[Depot]:
    depot.registry.set_queue("default", MAKERS)
    ticking = asyncio.create_task(keep_ticking(depot.remote.breakers))
    yield depot
    await end([ticking])


async def submit(depot: Depot) -> TaskId:
    payload = b'{"bank":"down"}'
    return await depot.submit(
        payload=payload, gates=queue_gates(MAKERS, payload, None), max_retries=50
    )


async def test_results_open_a_breaker_and_the_probe_closes_it(shop: Depot) -> None:
    worker = await shop.worker(capacity=50)
    ids = [await submit(shop) for _ in range(8)]
    claims = await shop.remote.poll(worker, limit=5, wait=0.0)
    await shop.remote.results(worker, [failure(claim) for claim in claims])
    await eventually(lambda: _is(shop, BreakerState.OPEN), within=20)

    # Three of them were ready before it opened: they are handed back and wait with the others.
    assert await shop.remote.poll(worker, limit=50, wait=0.0) == []
    await eventually(lambda: _all_wait(shop, ids, worker), within=20)
    history = await shop.history(ids[-1])
    assert [(one.ended, one.charged) for one in history.attempts][:1] in (
        [("released", False)],
        [],
    )

    probe = await eventually(lambda: shop.remote.poll(worker, limit=50, wait=0.0), within=20)
    assert len(probe) == 1
    await shop.remote.results(worker, [result(probe[0])])
    await eventually(lambda: _is_gone(shop), within=20)

    rest = await eventually(lambda: shop.remote.poll(worker, limit=50, wait=0.0), within=SOON)
    assert {claim.task_id for claim in rest} <= set(ids) - {probe[0].task_id}
    assert await shop.state(probe[0].task_id) is State.COMPLETED


async def _is(depot: Depot, state: BreakerState) -> bool:
    record = await breaker_records.read(depot.store, KEY)
    return record is not None and record.state is state


async def _is_gone(depot: Depot) -> bool:
    return await breaker_records.read(depot.store, KEY) is None


async def _all_wait(depot: Depot, ids: list[TaskId], worker: object) -> bool:
    states = {await depot.state(one) for one in ids}
    return State.RUNNING not in states
