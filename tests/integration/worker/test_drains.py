"""An operator sends a worker home: it finishes what it has, and leaves."""

from __future__ import annotations

import asyncio

from tests.integration.worker.workshop import Workshop

from holdfast.core.fleet import WorkerStatus
from holdfast.core.task import State


async def test_a_worker_that_is_asked_to_drain_finishes_and_leaves(shop: Workshop) -> None:
    running = asyncio.Event()

    @shop.task()
    async def brief() -> str:
        running.set()
        await asyncio.sleep(1.5)
        return "finished"

    first = await shop.submit(brief)
    worker = shop.worker(drain=10, concurrency=1)
    run = asyncio.create_task(worker.run())
    await running.wait()
    second = await shop.submit(brief)

    assert await shop.store.ask_to_drain(worker.id)
    await asyncio.wait_for(run, 10)

    assert worker.was_sent_home
    assert (await shop.get(first)).state is State.COMPLETED
    assert (await shop.get(second)).state is State.QUEUED
    [info] = await shop.store.workers()
    assert info.status is WorkerStatus.STOPPED


async def test_a_worker_that_is_stopped_was_not_sent_home(shop: Workshop) -> None:
    async with shop.working() as worker:
        pass

    assert not worker.was_sent_home
