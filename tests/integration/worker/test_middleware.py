"""What surrounds runs and their ends, in a worker on SQLite."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast import (
    Claim,
    Context,
    Holdfast,
    Middleware,
    NextRun,
    NextSettle,
    Outcome,
    Snooze,
    State,
)
from holdfast.core.lifecycle import Failed, Succeeded
from holdfast.core.task import AttemptEnd
from holdfast.worker.loading import load_app
from holdfast.worker.run import StopReason


class Noting(Middleware):
    """Writes down what it sees."""

    def __init__(self, word: str, seen: list[str]) -> None:
        self.word = word
        self.seen = seen

    async def run(self, ctx: Context, call_next: NextRun) -> Outcome:
        self.seen.append(f"{self.word} before {ctx.name}")
        outcome = await call_next()
        self.seen.append(f"{self.word} after {type(outcome).__name__}")
        return outcome


async def test_middleware_surrounds_every_kind_of_run_outermost_first(shop: Workshop) -> None:
    seen: list[str] = []

    @shop.task()
    async def on_the_loop() -> None:
        await asyncio.sleep(0)

    @shop.task(max_retries=0)
    def in_a_thread() -> None:
        raise ValueError

    shop.registry.middleware.add(Noting("outer", seen))
    shop.registry.middleware.add(Noting("inner", seen))
    await shop.submit(on_the_loop)
    await shop.drain()
    await shop.submit(in_a_thread)
    await shop.drain()

    assert seen == [
        "outer before on_the_loop",
        "inner before on_the_loop",
        "inner after Succeeded",
        "outer after Succeeded",
        "outer before in_a_thread",
        "inner before in_a_thread",
        "inner after Failed",
        "outer after Failed",
    ]


APP = """
import os
from holdfast import Holdfast, Middleware

app = Holdfast(url="sqlite:///{place}/tasks.db")
pids = []


@app.middleware
class WhereItRuns(Middleware):
    async def run(self, ctx, call_next):
        pids.append(os.getpid())
        return await call_next()


@app.task(executor="process")
def where() -> int:
    return os.getpid()
"""


async def test_around_a_task_in_a_process_it_runs_in_the_worker(tmp_path: Path) -> None:
    file = tmp_path / "around_processes.py"
    file.write_text(APP.format(place=tmp_path))
    app = load_app(f"{file}:app")
    assert isinstance(app, Holdfast)
    where = app.registry["around_processes.where"]

    async with app:
        task = await where.submit_async()
        await app.run_worker(burst=True, app_spec=f"{file}:app")
        ran_in = await task.result_async()

    assert where.handler.__globals__["pids"] == [os.getpid()]
    assert ran_in != os.getpid()


async def test_what_it_raises_is_the_attempts_failure_with_its_traceback(shop: Workshop) -> None:
    class Broken(Middleware):
        async def run(self, ctx: Context, call_next: NextRun) -> Outcome:
            await call_next()
            raise RuntimeError("bad plumbing")

    @shop.task(max_retries=0)
    async def work() -> None: ...

    shop.registry.middleware.add(Broken)
    task = await shop.submit(work)
    await shop.drain()

    found = await shop.get(task)
    assert found.state is State.DEAD_LETTER
    assert found.error is not None
    assert found.error.message == "bad plumbing"
    assert "test_middleware.py" in (found.error.traceback or "")


async def test_it_may_hand_the_task_back_before_it_runs(shop: Workshop) -> None:
    starts: list[int] = []

    class NotNow(Middleware):
        async def run(self, ctx: Context, call_next: NextRun) -> Outcome:
            if ctx.attempt == 1:
                raise Snooze(after=0.01)
            return await call_next()

    @shop.task(max_retries=0)
    async def work(ctx: Context) -> None:
        starts.append(ctx.attempt)

    shop.registry.middleware.add(NotNow)
    task = await shop.submit(work)
    async with shop.working():
        await shop.reaches(task, State.COMPLETED)

    assert starts == [2]
    assert [one.ended for one in await shop.attempts(task)] == [
        AttemptEnd.RELEASED,
        AttemptEnd.COMPLETED,
    ]


async def _nothing(ctx: Context, call_next: NextRun) -> Outcome:
    await call_next()
    return None  # type: ignore[return-value] # the mistake


async def _twice(ctx: Context, call_next: NextRun) -> Outcome:
    await call_next()
    return await call_next()


@pytest.mark.parametrize(
    ("mistake", "says"),
    [(_nothing, "returned None, which is no outcome"), (_twice, "called `call_next()` twice")],
)
async def test_a_mistake_in_it_fails_the_attempt_and_says_what_to_do(
    shop: Workshop, mistake: Callable[[Context, NextRun], Awaitable[Outcome]], says: str
) -> None:
    class Mistaken(Middleware):
        async def run(self, ctx: Context, call_next: NextRun) -> Outcome:
            return await mistake(ctx, call_next)

    @shop.task(max_retries=0)
    async def work() -> None: ...

    shop.registry.middleware.add(Mistaken)
    task = await shop.submit(work)
    await shop.drain()

    error = (await shop.get(task)).error
    assert error is not None
    assert says in error.message


async def test_a_task_that_is_cancelled_while_it_waits_there_never_runs(shop: Workshop) -> None:
    waiting, go_on, ran = asyncio.Event(), asyncio.Event(), False

    class Waiting(Middleware):
        async def run(self, ctx: Context, call_next: NextRun) -> Outcome:
            waiting.set()
            await go_on.wait()
            return await call_next()

    @shop.task()
    async def work() -> None:
        nonlocal ran
        ran = True

    shop.registry.middleware.add(Waiting)
    task = await shop.submit(work)
    async with shop.working() as worker:
        await asyncio.wait_for(waiting.wait(), 10)
        assert worker._parts is not None
        (run,) = worker._parts.slots.running
        run.stop(StopReason.CANCELLED)
        go_on.set()
        await shop.reaches(task, State.CANCELLED)

    assert not ran


async def test_a_handler_that_blocks_the_loop_past_its_time_limit_has_timed_out(
    shop: Workshop,
) -> None:
    @shop.task(timeout=0.05, max_retries=0)
    async def block() -> None:
        time.sleep(0.1)  # noqa: ASYNC251 - the mistake

    shop.registry.middleware.add(Noting("around", []))
    task = await shop.submit(block)
    await shop.drain()

    assert [one.ended for one in await shop.attempts(task)] == [AttemptEnd.TIMEOUT]


async def test_settle_sees_how_each_attempt_ended_and_what_the_task_becomes(
    shop: Workshop,
) -> None:
    seen: list[tuple[str, int, str, State]] = []

    class Counting(Middleware):
        def settle(self, claim: Claim, outcome: Outcome, call_next: NextSettle) -> None:
            becomes = call_next(outcome).state
            seen.append((claim.name, claim.attempt, type(outcome).__name__, becomes))

    @shop.task(max_retries=1)
    async def work() -> None:
        raise ValueError

    shop.registry.middleware.add(Counting)
    task = await shop.submit(work)
    async with shop.working():
        await shop.reaches(task, State.DEAD_LETTER)

    assert seen == [
        ("work", 1, "Failed", State.RETRYING),
        ("work", 2, "Failed", State.DEAD_LETTER),
    ]


async def test_settle_may_change_the_outcome(shop: Workshop) -> None:
    class Forgiving(Middleware):
        def settle(self, claim: Claim, outcome: Outcome, call_next: NextSettle) -> None:
            call_next(Succeeded(b'"well"') if isinstance(outcome, Failed) else outcome)

    @shop.task(max_retries=0)
    async def work() -> None:
        raise ValueError

    shop.registry.middleware.add(Forgiving)
    task = await shop.submit(work)
    await shop.drain()

    found = await shop.get(task)
    assert (found.state, found.result) == (State.COMPLETED, b'"well"')


async def test_a_settle_that_passes_nothing_on_keeps_no_attempt_from_ending(
    shop: Workshop,
) -> None:
    class Silent(Middleware):
        def settle(self, claim: Claim, outcome: Outcome, call_next: NextSettle) -> None: ...

    @shop.task()
    async def work() -> int:
        return 7

    shop.registry.middleware.add(Silent)
    task = await shop.submit(work)
    await shop.drain()

    assert (await shop.get(task)).result == b"7"


@pytest.mark.parametrize("fails", [False, True])
async def test_a_settle_that_raises_fails_a_success_and_lets_other_ends_stand(
    shop: Workshop, *, fails: bool
) -> None:
    class Broken(Middleware):
        def settle(self, claim: Claim, outcome: Outcome, call_next: NextSettle) -> None:
            raise RuntimeError("bad plumbing")

    @shop.task(max_retries=0)
    async def work() -> None:
        if fails:
            raise ValueError("its own")

    shop.registry.middleware.add(Broken)
    task = await shop.submit(work)
    await shop.drain()

    found = await shop.get(task)
    assert found.state is State.DEAD_LETTER
    assert found.error is not None
    assert found.error.message == ("its own" if fails else "bad plumbing")
