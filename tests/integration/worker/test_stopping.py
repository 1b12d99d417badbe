"""Timeouts and cancels: what stops a body, and what happens to its slot."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cause, Reason, State, TaskId
from holdfast.definitions.context import Context
from holdfast.testing.eventually import eventually


async def cancel(shop: Workshop, task: TaskId) -> None:
    await shop.store.cancel(TaskFilter(ids=(task,)), limit=1)


async def test_an_async_body_is_stopped_at_its_timeout(shop: Workshop) -> None:
    ended = asyncio.Event()

    @shop.task(timeout=0.1, max_retries=0)
    async def endless() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    task = await shop.submit(endless)
    started = time.monotonic()
    async with shop.working():
        dead = await shop.reaches(task, State.DEAD_LETTER)

    assert ended.is_set()
    assert 0.1 <= time.monotonic() - started < 1.1
    assert dead.reason is Reason.TIMEOUT
    assert dead.error is not None
    assert dead.error.type == "AttemptTimeout"
    assert "0.1 s" in dead.error.message
    assert "await asyncio.sleep(3600)" in (dead.error.traceback or "")


async def test_a_timeout_is_retried_and_the_history_says_so(shop: Workshop) -> None:
    @shop.task(timeout=0.05, max_retries=1)
    async def slow_at_first(ctx: Context) -> str:
        if ctx.attempt == 1:
            await asyncio.sleep(3600)
        return "in time"

    task = await shop.submit(slow_at_first)
    async with shop.working():
        await shop.reaches(task, State.COMPLETED)

    first, second = await shop.attempts(task)
    assert (first.ended, second.cause) == (AttemptEnd.TIMEOUT, Cause.TIMEOUT)


async def test_a_body_that_swallows_every_cancellation_is_driven_no_further(shop: Workshop) -> None:
    swallowed = 0

    @shop.task(timeout=0.1, max_retries=0)
    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                swallowed += 1

    @shop.task()
    async def next_one() -> None: ...

    task = await shop.submit(stubborn)
    async with shop.working(concurrency=1):
        started = time.monotonic()
        await shop.reaches(task, State.DEAD_LETTER)
        late = time.monotonic() - started - 0.1
        after = await shop.submit(next_one)
        await shop.reaches(after, State.COMPLETED)

    assert late < 1.0
    assert swallowed == 2


async def test_a_body_that_waits_for_an_unkillable_task_keeps_its_slot(shop: Workshop) -> None:
    release = asyncio.Event()

    async def unkillable() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    @shop.task(timeout=0.1, max_retries=0)
    async def stuck() -> str:
        await asyncio.create_task(unkillable())
        return "too late"

    @shop.task()
    async def next_one() -> None: ...

    task = await shop.submit(stuck)
    async with shop.working(concurrency=1):
        await shop.reaches(task, State.DEAD_LETTER)
        after = await shop.submit(next_one)
        await asyncio.sleep(0.3)
        assert (await shop.get(after)).state is State.QUEUED
        release.set()
        await shop.reaches(after, State.COMPLETED)

    assert (await shop.get(task)).result is None
    assert len(await shop.attempts(task)) == 1


async def test_a_body_that_returns_after_its_timeout_has_timed_out(shop: Workshop) -> None:
    @shop.task(timeout=0.05, max_retries=0)
    async def sly() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        return "done anyway"

    task = await shop.submit(sly)
    await shop.drain()

    dead = await shop.get(task)
    assert (dead.state, dead.reason, dead.result) == (State.DEAD_LETTER, Reason.TIMEOUT, None)


async def test_a_cancelled_slot_leaves_no_trace_on_the_next_body(shop: Workshop) -> None:
    @shop.task(max_retries=0)
    async def cancels_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    @shop.task(max_retries=0)
    async def innocent() -> str:
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0.01))
        return "untouched"

    first = await shop.submit(cancels_itself)
    second = await shop.submit(innocent)
    await shop.drain(concurrency=1)

    assert (await shop.get(first)).state is State.COMPLETED
    assert (await shop.get(second)).state is State.COMPLETED


async def test_a_thread_body_is_stopped_at_its_timeout(shop: Workshop) -> None:
    stopped = threading.Event()

    @shop.task(timeout=0.1, max_retries=0)
    def spin() -> None:
        try:
            while True:
                time.sleep(0.005)
        finally:
            stopped.set()

    task = await shop.submit(spin)
    async with shop.working():
        dead = await shop.reaches(task, State.DEAD_LETTER, within=2)

    assert stopped.is_set()
    assert dead.reason is Reason.TIMEOUT


async def test_a_thread_that_cannot_be_stopped_keeps_its_slot_but_not_its_task(
    shop: Workshop,
) -> None:
    release = threading.Event()

    @shop.task(timeout=0.1, max_retries=0)
    def deaf() -> str:
        release.wait(30)
        return "too late"

    @shop.task()
    def next_one() -> str:
        return threading.current_thread().name

    task = await shop.submit(deaf)
    async with shop.working(concurrency=1):
        started = time.monotonic()
        await shop.reaches(task, State.DEAD_LETTER)
        late = time.monotonic() - started - 0.1
        after = await shop.submit(next_one)
        await asyncio.sleep(0.3)
        assert (await shop.get(after)).state is State.QUEUED
        release.set()
        await shop.reaches(after, State.COMPLETED)

    assert late < 1.0
    assert (await shop.get(task)).result is None
    assert len(await shop.attempts(task)) == 1


async def test_an_interrupted_thread_does_not_harm_the_next_body(shop: Workshop) -> None:
    @shop.task(timeout=0.02, max_retries=0)
    def just_too_long() -> None:
        time.sleep(0.02)

    @shop.task(max_retries=0)
    def innocent() -> int:
        return sum(range(10_000))

    for _ in range(15):
        await shop.submit(just_too_long)
        await shop.submit(innocent)
    await shop.drain(concurrency=2)

    failed = TaskFilter(name="innocent", states=frozenset(State) - {State.COMPLETED})
    assert (await shop.store.list(failed, limit=50)).tasks == ()


async def test_extend_moves_the_deadline_both_ways(shop: Workshop) -> None:
    @shop.task(timeout=0.1, max_retries=0)
    async def longer(ctx: Context) -> str:
        ctx.extend(10)
        await asyncio.sleep(0.3)
        return "had time"

    @shop.task(timeout=60, max_retries=0)
    def shorter(ctx: Context) -> None:
        ctx.extend(0.1)
        while True:
            time.sleep(0.005)

    first, second = await shop.submit(longer), await shop.submit(shorter)
    async with shop.working():
        await shop.reaches(first, State.COMPLETED)
        dead = await shop.reaches(second, State.DEAD_LETTER, within=3)

    assert dead.reason is Reason.TIMEOUT


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_cancel_reaches_a_running_task_in_two_seconds(shop: Workshop, kind: str) -> None:
    running = threading.Event()

    @shop.task()
    async def endless() -> None:
        running.set()
        await asyncio.sleep(3600)

    @shop.task()
    def endless_in_a_thread() -> None:
        running.set()
        while True:
            time.sleep(0.005)

    task = await shop.submit(endless if kind == "async" else endless_in_a_thread)
    async with shop.working():
        await eventually(running.is_set)
        asked = time.monotonic()
        await cancel(shop, task)
        await shop.reaches(task, State.CANCELLED)

    assert time.monotonic() - asked < 2
    [attempt] = await shop.attempts(task)
    assert attempt.ended is AttemptEnd.CANCELLED


async def test_a_cancelled_task_that_fails_meanwhile_is_not_retried(shop: Workshop) -> None:
    running, go = asyncio.Event(), asyncio.Event()

    @shop.task(max_retries=5)
    async def fails() -> None:
        running.set()
        await go.wait()
        raise ValueError

    task = await shop.submit(fails)
    async with shop.working():
        await running.wait()
        await cancel(shop, task)
        go.set()
        await shop.reaches(task, State.CANCELLED)

    assert len(await shop.attempts(task)) == 1


async def test_a_body_that_blocked_the_loop_past_its_timeout_has_timed_out(shop: Workshop) -> None:
    @shop.task(timeout=0.1, max_retries=0)
    async def at_once() -> str:
        time.sleep(0.2)  # noqa: ASYNC251 - the mistake that is looked at
        return "late"

    @shop.task(timeout=0.1, max_retries=0)
    async def later() -> str:
        await asyncio.sleep(0)
        time.sleep(0.2)  # noqa: ASYNC251 - the mistake that is looked at
        return "late"

    tasks = [await shop.submit(at_once), await shop.submit(later)]
    await shop.drain()

    for task in tasks:
        dead = await shop.get(task)
        assert (dead.state, dead.reason, dead.result) == (State.DEAD_LETTER, Reason.TIMEOUT, None)
