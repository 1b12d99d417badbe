"""A stop asks first: a body that looks has time to end by itself, the others lose none."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Reason, State
from holdfast.definitions.context import Context
from holdfast.errors import AttemptTimeout, HoldfastError, Retry
from holdfast.testing.eventually import eventually

both = pytest.mark.parametrize("kind", ["async", "thread"])


class Body:
    """A body that tidies up for 0.3 s once it is asked, and says whether it could."""

    def __init__(self, shop: Workshop, **options: object) -> None:
        self.running, self.tidy = threading.Event(), threading.Event()
        self.asked_at = 0.0

        @shop.task(max_retries=0, **options)
        async def on_the_loop(ctx: Context) -> str:
            self.running.set()
            while not ctx.stop_requested:  # noqa: ASYNC110 - how a body polls
                await asyncio.sleep(0.01)
            self.asked_at = time.monotonic()
            await asyncio.sleep(0.3)
            self.tidy.set()
            return "tidy"

        @shop.task(max_retries=0, **options)
        def in_a_thread(ctx: Context) -> str:
            self.running.set()
            while not ctx.stop_requested:
                time.sleep(0.01)
            self.asked_at = time.monotonic()
            for _ in range(30):
                time.sleep(0.01)
            self.tidy.set()
            return "tidy"

        self.kinds = {"async": on_the_loop, "thread": in_a_thread}


@both
async def test_a_body_that_looks_ends_by_itself_after_its_timeout(
    shop: Workshop, kind: str
) -> None:
    body = Body(shop, timeout=0.1)
    task = await shop.submit(body.kinds[kind])
    async with shop.working():
        dead = await shop.reaches(task, State.DEAD_LETTER)

    assert body.tidy.is_set()
    assert (dead.reason, dead.result) == (Reason.TIMEOUT, None)


@both
async def test_a_body_that_looks_ends_by_itself_after_a_cancel(shop: Workshop, kind: str) -> None:
    body = Body(shop)
    task = await shop.submit(body.kinds[kind])
    async with shop.working():
        await eventually(body.running.is_set)
        asked = time.monotonic()
        await shop.store.cancel(TaskFilter(ids=(task,)), limit=1)
        await shop.reaches(task, State.CANCELLED)

    assert body.tidy.is_set()
    assert body.asked_at - asked < 2


@both
async def test_a_body_that_looks_and_goes_on_is_interrupted_after_its_grace(
    shop: Workshop, kind: str
) -> None:
    interrupted_at = 0.0

    @shop.task(timeout=0.1, max_retries=0, stop_grace=0.5)
    async def on_the_loop(ctx: Context) -> None:
        nonlocal interrupted_at
        try:
            await asyncio.sleep(3600)
        finally:
            interrupted_at = time.monotonic()

    @shop.task(timeout=0.1, max_retries=0, stop_grace=0.5)
    def in_a_thread(ctx: Context) -> None:
        nonlocal interrupted_at
        try:
            while True:
                time.sleep(0.005)
        except AttemptTimeout:
            interrupted_at = time.monotonic()
            raise

    began = time.monotonic()
    task = await shop.submit(on_the_loop if kind == "async" else in_a_thread)
    async with shop.working():
        await shop.reaches(task, State.DEAD_LETTER)

    assert interrupted_at - began >= 0.6


@both
async def test_no_grace_means_at_once(shop: Workshop, kind: str) -> None:
    body = Body(shop, timeout=0.1, stop_grace=0)
    task = await shop.submit(body.kinds[kind])
    async with shop.working():
        await shop.reaches(task, State.DEAD_LETTER, within=3)

    assert not body.tidy.is_set()


@both
async def test_a_drain_asks_at_its_beginning_and_hands_back_who_left(
    shop: Workshop, kind: str
) -> None:
    body = Body(shop)
    task = await shop.submit(body.kinds[kind])
    worker = shop.worker(drain=60)
    run = asyncio.create_task(worker.run())
    await eventually(body.running.is_set)

    worker.stop()
    await asyncio.wait_for(run, 10)

    assert body.tidy.is_set()
    back = await shop.get(task)
    assert (back.state, back.charged, back.crash_count) == (State.QUEUED, 0, 0)
    [attempt] = await shop.attempts(task)
    assert attempt.ended is AttemptEnd.RELEASED


async def test_a_drain_charges_nothing_to_a_body_that_was_asked_and_raises(shop: Workshop) -> None:
    running = asyncio.Event()

    @shop.task(max_retries=0)
    async def copy(ctx: Context) -> None:
        running.set()
        await ctx.stopping
        raise Retry("stopped half way")

    task = await shop.submit(copy)
    worker = shop.worker(drain=60)
    run = asyncio.create_task(worker.run())
    await running.wait()

    worker.stop()
    await asyncio.wait_for(run, 10)

    back = await shop.get(task)
    assert (back.state, back.charged) == (State.QUEUED, 0)


@both
async def test_a_body_that_never_looks_completes_within_the_drain(
    shop: Workshop, kind: str
) -> None:
    running = threading.Event()

    @shop.task()
    async def on_the_loop() -> str:
        running.set()
        await asyncio.sleep(0.3)
        return "done"

    @shop.task()
    def in_a_thread() -> str:
        running.set()
        time.sleep(0.3)
        return "done"

    task = await shop.submit(on_the_loop if kind == "async" else in_a_thread)
    worker = shop.worker(drain=60)
    run = asyncio.create_task(worker.run())
    await eventually(running.is_set)

    worker.stop()
    await asyncio.wait_for(run, 10)

    assert (await shop.get(task)).result == b'"done"'


async def test_waiting_for_the_request_ends_when_it_comes(shop: Workshop) -> None:
    heard: list[str] = []

    @shop.task(timeout=0.2, max_retries=0)
    async def on_the_loop(ctx: Context) -> None:
        with pytest.raises(HoldfastError, match=r"await ctx\.stopping"):
            ctx.stopping.wait()
        await ctx.stopping
        heard.append("async")

    @shop.task(timeout=0.2, max_retries=0)
    def in_a_thread(ctx: Context) -> None:
        assert not ctx.stopping.wait(0.01)
        assert ctx.stopping.wait("10s")
        heard.append("thread")

    tasks = [await shop.submit(on_the_loop), await shop.submit(in_a_thread)]
    async with shop.working():
        for task in tasks:
            dead = await shop.reaches(task, State.DEAD_LETTER, within=4)
            assert dead.reason is Reason.TIMEOUT

    assert sorted(heard) == ["async", "thread"]
