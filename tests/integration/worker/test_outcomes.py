"""How a handler's end becomes a task's state."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import timedelta

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.core.task import AttemptEnd, Cause, Reason, State
from holdfast.definitions.context import Context, context
from holdfast.errors import Fatal, Retry, Snooze


async def test_an_async_task_completes_with_its_result(shop: Workshop) -> None:
    @shop.task()
    async def add(a: int, b: int) -> int:
        return a + b

    task = await shop.submit(add, 2, 3)
    await shop.drain()

    done = await shop.get(task)
    assert (done.state, done.result, done.attempt) == (State.COMPLETED, b"5", 1)


async def test_an_async_task_that_waits_completes_too(shop: Workshop) -> None:
    @shop.task()
    async def slow(a: int) -> int:
        await asyncio.sleep(0.01)
        return a

    tasks = await shop.submit_many(slow, [(n,) for n in range(30)])
    await shop.drain()

    assert [(await shop.get(task)).result for task in tasks] == [b"%d" % n for n in range(30)]


async def test_a_sync_task_runs_in_a_thread_and_knows_its_context(shop: Workshop) -> None:
    @shop.task()
    def where(ctx: Context) -> list[object]:
        import threading

        same = context().id == ctx.id
        return [threading.current_thread() is threading.main_thread(), same, ctx.attempt]

    task = await shop.submit(where)
    await shop.drain()

    assert (await shop.get(task)).result == b"[false,true,1]"


async def test_what_one_body_sets_in_its_context_is_not_seen_by_the_next(shop: Workshop) -> None:
    from contextvars import ContextVar

    leak: ContextVar[str] = ContextVar("leak", default="clean")

    @shop.task()
    async def stain(wait: bool) -> str:
        before = leak.get()
        leak.set("stained")
        if wait:
            await asyncio.sleep(0)
        assert leak.get() == "stained"
        return before

    tasks = await shop.submit_many(stain, [(False,), (True,), (False,), (True,)])
    await shop.drain(concurrency=1)

    assert {(await shop.get(task)).result for task in tasks} == {b'"clean"'}


async def test_an_error_is_retried_until_the_retries_are_used_up(shop: Workshop) -> None:
    @shop.task(max_retries=2)
    async def broken() -> None:
        raise ValueError("no luck")

    task = await shop.submit(broken)
    async with shop.working():
        dead = await shop.reaches(task, State.DEAD_LETTER)

    assert dead.reason is Reason.RETRIES_EXHAUSTED
    assert dead.error is not None
    assert (dead.error.type, dead.error.message) == ("ValueError", "no luck")
    attempts = await shop.attempts(task)
    assert [one.cause for one in attempts] == [Cause.SUBMITTED, Cause.RETRY, Cause.RETRY]
    assert [one.ended for one in attempts] == [AttemptEnd.ERROR] * 3


async def test_a_traceback_begins_in_the_handler(shop: Workshop) -> None:
    @shop.task(max_retries=0)
    async def broken() -> None:
        raise ValueError("here")

    @shop.task(max_retries=0)
    def broken_in_a_thread() -> None:
        raise ValueError("here")

    tasks = [await shop.submit(broken), await shop.submit(broken_in_a_thread)]
    await shop.drain()

    for task in tasks:
        error = (await shop.get(task)).error
        assert error is not None
        assert error.traceback is not None
        first, place = error.traceback.splitlines()[:2]
        assert first == "Traceback (most recent call last):"
        assert "test_outcomes.py" in place


async def test_a_fatal_error_is_not_retried(shop: Workshop) -> None:
    @shop.task(max_retries=5)
    async def hopeless() -> None:
        raise Fatal("no such account")

    task = await shop.submit(hopeless)
    await shop.drain()

    failed = await shop.get(task)
    assert (failed.state, failed.attempt) == (State.FAILED, 1)
    assert failed.reason is Reason.NOT_RETRIABLE


async def test_an_error_named_in_no_retry_for_is_not_retried(shop: Workshop) -> None:
    @shop.task(max_retries=5, no_retry_for=(LookupError,))
    async def hopeless() -> None:
        raise KeyError("gone")

    task = await shop.submit(hopeless)
    await shop.drain()

    assert (await shop.get(task)).state is State.FAILED


async def test_retry_after_wins_over_the_backoff(shop: Workshop) -> None:
    @shop.task(max_retries=1)
    async def later() -> None:
        raise Retry("busy", after=timedelta(hours=1))

    task = await shop.submit(later)
    await shop.drain()

    waiting = await shop.get(task)
    assert (waiting.state, waiting.charged) == (State.RETRYING, 1)
    assert (waiting.run_at - waiting.created_at).total_seconds() == pytest.approx(3600, abs=60)


async def test_a_snoozed_task_waits_and_is_not_charged(shop: Workshop) -> None:
    @shop.task()
    async def not_now() -> None:
        raise Snooze(after=3600)

    task = await shop.submit(not_now)
    await shop.drain()

    waiting = await shop.get(task)
    assert (waiting.state, waiting.charged) == (State.QUEUED, 0)
    [attempt] = await shop.attempts(task)
    assert attempt.ended is AttemptEnd.RELEASED


async def test_a_retry_due_soon_does_not_wait_for_the_next_poll(shop: Workshop) -> None:
    starts: list[float] = []

    @shop.task(max_retries=1)
    async def twice() -> None:
        starts.append(time.monotonic())
        if len(starts) == 1:
            raise Retry(after=0.05)

    async with shop.working(poll=5.0):
        task = await shop.submit(twice)
        await shop.reaches(task, State.COMPLETED, within=3)

    assert 0.05 <= starts[1] - starts[0] < 1.0


async def test_a_result_that_cannot_be_stored_fails_the_task_clearly(shop: Workshop) -> None:
    @shop.task(max_retries=3)
    async def nan():  # type: ignore[no-untyped-def]
        return float("nan")

    task = await shop.submit(nan)
    await shop.drain()

    failed = await shop.get(task)
    assert failed.state is State.FAILED
    assert failed.error is not None
    assert "its result cannot be stored" in failed.error.message


@pytest.mark.parametrize("kind", ["async", "thread"])
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_no_exception_of_a_handler_ends_the_worker(
    shop: Workshop, kind: str, error: type[BaseException]
) -> None:
    @shop.task(max_retries=0)
    async def rude() -> None:
        raise error

    @shop.task(max_retries=0)
    def rude_in_a_thread() -> None:
        raise error

    @shop.task()
    async def polite() -> str:
        return "still here"

    bad = await shop.submit(rude if kind == "async" else rude_in_a_thread)
    good = await shop.submit(polite)
    await shop.drain(concurrency=1)

    assert (await shop.get(bad)).state is State.DEAD_LETTER
    assert (await shop.get(good)).state is State.COMPLETED


async def test_an_error_text_that_no_store_can_hold_is_escaped(shop: Workshop) -> None:
    @shop.task(max_retries=0)
    async def odd() -> None:
        raise ValueError("nul \x00, lone \ud800 surrogate")

    task = await shop.submit(odd)
    await shop.drain()

    error = (await shop.get(task)).error
    assert error is not None
    assert error.message == "nul \\0, lone \\ud800 surrogate"


async def test_a_very_deep_traceback_is_kept_short(shop: Workshop) -> None:
    @shop.task(max_retries=0)
    async def deep() -> None:
        def down(n: int) -> None:
            if n == 0:
                raise ValueError("x" * 100_000)
            if n % 2:
                down(n - 1)
            else:
                down(n - 1)  # another line: repeated lines are folded by the formatter itself

        down(sys.getrecursionlimit() // 2)

    task = await shop.submit(deep)
    await shop.drain()

    error = (await shop.get(task)).error
    assert error is not None
    assert error.traceback is not None
    assert len(error.traceback) < 17 * 1024
    assert len(error.message) < 5 * 1024
