"""Progress, cost and log lines on their way from a handler to the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tests.integration.worker.faults import Spoiled
from tests.integration.worker.workshop import Workshop

from holdfast.core.attempt import Refusal, Report
from holdfast.core.task import Cost, Progress, State, TaskId
from holdfast.definitions.context import Context
from holdfast.testing.eventually import eventually
from holdfast.worker.reporter import Reporter


async def test_progress_shows_while_the_task_runs(shop: Workshop) -> None:
    go = threading.Event()

    @shop.task()
    def half(ctx: Context) -> None:
        ctx.progress(1, 2, "half way")
        go.wait(10)

    task = await shop.submit(half)
    async with shop.working():

        async def shows() -> bool:
            progress = (await shop.get(task)).progress
            return progress == Progress(done=1.0, total=2.0, message="half way")

        await eventually(shows, within=3)
        go.set()
        await shop.reaches(task, State.COMPLETED)


async def test_a_thousand_reports_are_a_few_writes_and_nothing_is_lost(shop: Workshop) -> None:
    @shop.task()
    async def chatty(ctx: Context) -> None:
        for n in range(1000):
            ctx.progress(n, 1000)
            ctx.cost(0.5, tokens_in=2)
            if n % 100 == 0:
                ctx.log(f"line {n}")
            await asyncio.sleep(0)

    task = await shop.submit(chatty)
    spoiled, store = Spoiled.around(shop.store)
    await shop.drain(store=store)

    done = await shop.get(task)
    assert done.progress is not None
    assert (done.progress.done, done.cost.units, done.cost.tokens_in) == (999, 500, 2000)
    history = await shop.store.history(task)
    assert history is not None
    lines = [event.detail for event in history.events if event.kind == "log"]
    assert lines == [f"line {n}" for n in range(0, 1000, 100)]
    assert spoiled.calls["report"] <= 5


async def test_what_a_task_said_last_is_stored_before_its_end(shop: Workshop) -> None:
    @shop.task()
    async def quick(ctx: Context) -> None:
        ctx.progress(1, 1)
        ctx.log("done")

    tasks = await shop.submit_many(quick, [()] * 50)
    await shop.drain()

    for task in tasks:
        history = await shop.store.history(task)
        assert history is not None
        assert [event.detail for event in history.events if event.kind == "log"] == ["done"]
    assert (await shop.store.stats()).refused == 0


async def test_a_report_from_a_body_that_was_left_behind_is_dropped(shop: Workshop) -> None:
    go, spoke = threading.Event(), threading.Event()

    @shop.task(timeout=0.05, max_retries=0)
    def deaf(ctx: Context) -> None:
        go.wait(20)
        ctx.progress(1, 1)
        spoke.set()

    task = await shop.submit(deaf)
    spoiled, store = Spoiled.around(shop.store)
    async with shop.working(store=store):
        await shop.reaches(task, State.DEAD_LETTER)
        go.set()
        await eventually(lambda: spoke.is_set() or True)
        await asyncio.sleep(0.3)

    assert spoiled.calls["report"] == 0


async def test_reports_survive_an_outage(shop: Workshop) -> None:
    said, go = asyncio.Event(), asyncio.Event()

    @shop.task()
    async def talks(ctx: Context) -> None:
        ctx.cost(3)
        said.set()
        await go.wait()

    task = await shop.submit(talks)
    spoiled, store = Spoiled.around(shop.store)
    async with shop.working(store=store):
        await said.wait()
        spoiled.away.add("report")
        await eventually(lambda: spoiled.refused["report"] >= 1)
        go.set()
        spoiled.away.clear()
        done = await shop.reaches(task, State.COMPLETED)

    assert done.cost.units == 3


BAD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Decimal", {"units": Decimal("1.5")}),
    ("tokens_in", {"tokens_in": 2**70}),
    ("'12'", {"units": "12"}),
)


async def test_a_bad_report_fails_its_own_attempt_and_no_neighbours(shop: Workshop) -> None:
    @shop.task(max_retries=0)
    async def bad(ctx: Context, which: int) -> None:
        ctx.log("before")
        ctx.cost(**BAD[which][1])

    @shop.task()
    async def good(ctx: Context) -> None:
        ctx.log("fine \ud800")
        ctx.cost(2.5, tokens_in=3)

    goods = await shop.submit_many(good, [()] * 5)
    bads = await shop.submit_many(bad, [(n,) for n in range(3)])
    await shop.drain()

    for (words, _), task in zip(BAD, bads, strict=True):
        ended = await shop.get(task)
        assert (ended.state, ended.cost) == (State.FAILED, Cost())
        assert ended.error is not None
        assert words in ended.error.message
    for task in goods:
        assert (await shop.get(task)).cost == Cost(units=2.5, tokens_in=3)
    assert await _lines(shop, goods[0]) == ["fine \\ud800"]
    assert await _lines(shop, bads[0]) == ["before"]


async def test_what_the_store_refuses_costs_nothing_else_that_was_said(shop: Workshop) -> None:
    go = asyncio.Event()

    @shop.task()
    async def waits() -> None:
        await go.wait()

    async def ignore(_refusals: Sequence[Refusal]) -> None: ...

    tasks = await shop.submit_many(waits, [()] * 5)
    async with shop.working():
        running = [await shop.reaches(task, State.RUNNING) for task in tasks]
        reporter = Reporter(shop.store, asyncio.get_running_loop(), ignore)
        for number, task in enumerate(running):
            assert task.worker_id is not None
            # What no context lets through, and SQLite cannot hold.
            cost = Cost(tokens_in=2**70 if number == 2 else 1)
            reporter.put(Report(task.id, task.attempt, task.worker_id, None, cost, ("said",)))
        writing = asyncio.create_task(reporter.run())

        async def all_said() -> bool:
            return all([await _lines(shop, task) == ["said"] for task in tasks])

        await eventually(all_said, within=5)
        writing.cancel()
        go.set()
        for good in [*tasks[:2], *tasks[3:]]:
            assert (await shop.reaches(good, State.COMPLETED)).cost.tokens_in == 1


async def _lines(shop: Workshop, task: TaskId) -> list[str | None]:
    history = await shop.store.history(task)
    assert history is not None
    return [event.detail for event in history.events if event.kind == "log"]
