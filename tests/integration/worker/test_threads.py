"""Sync handlers: how many threads they get, and that none is shared in time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.definitions.context import Context
from holdfast.testing.eventually import eventually


async def test_blocking_bodies_run_side_by_side_one_per_slot(shop: Workshop) -> None:
    barrier = threading.Barrier(8, timeout=10)

    @shop.task(max_retries=0)
    def meet() -> int:
        return barrier.wait()

    tasks = await shop.submit_many(meet, [()] * 8)
    async with shop.working(concurrency=8):
        for task in tasks:
            await shop.reaches(task, State.COMPLETED)


async def test_short_bodies_are_served_by_few_threads(shop: Workshop) -> None:
    seen: set[str] = set()

    @shop.task()
    def short() -> None:
        seen.add(threading.current_thread().name)

    await shop.submit_many(short, [()] * 500)
    await shop.drain(concurrency=50)

    assert 1 <= len(seen) < 50


async def test_bodies_that_go_on_keep_their_threads_and_slots_until_they_end(
    shop: Workshop,
) -> None:
    release = threading.Event()

    @shop.task(timeout=0.05, max_retries=0)
    def deaf() -> None:
        release.wait(30)

    @shop.task()
    def works() -> None: ...

    await shop.submit_many(deaf, [()] * 6)
    tasks = await shop.submit_many(works, [()] * 20)
    dead = TaskFilter(name="deaf", states=frozenset({State.DEAD_LETTER}))
    async with shop.working(concurrency=2):
        await eventually(lambda: are_dead(shop, dead, 2))
        assert (await shop.get(tasks[0])).state is State.QUEUED
        release.set()
        for task in tasks:
            await shop.reaches(task, State.COMPLETED, within=15)

    assert await shop.store.count(TaskFilter(name="deaf"), limit=10) == 6
    assert await are_dead(shop, dead, 2), "those that began before the release"


async def are_dead(shop: Workshop, dead: TaskFilter, count: int) -> bool:
    return await shop.store.count(dead, limit=10) == count


async def test_a_run_stopped_before_a_thread_took_it_never_starts(shop: Workshop) -> None:
    hold, started = threading.Event(), threading.Event()

    @shop.task()
    def block(ctx: Context) -> None:
        started.set()
        hold.wait(20)

    async with shop.working(concurrency=1, drain=0.01) as worker:
        task = await shop.submit(block)
        await eventually(started.is_set)
        began = time.monotonic()
        worker.stop()
        worker.stop()
        await shop.reaches(task, State.QUEUED)
    hold.set()

    assert time.monotonic() - began < 5


async def test_stops_and_starts_at_the_same_moment_lose_no_slot(shop: Workshop) -> None:
    @shop.task(timeout=0.01, max_retries=0)
    def brief(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.0005)

    spans = [0.001, 0.009, 0.0095, 0.01, 0.0105, 0.02]
    await shop.submit_many(brief, [(spans[n % 6],) for n in range(240)])
    await shop.drain(concurrency=6)

    ended = frozenset({State.COMPLETED, State.DEAD_LETTER})
    assert await shop.store.count(TaskFilter(states=ended), limit=1000) == 240
    left = [thread for thread in threading.enumerate() if "holdfast-thread" in thread.name]
    await eventually(lambda: not any(thread.is_alive() for thread in left), within=5)
    await asyncio.sleep(0)


@pytest.mark.parametrize("hook", ["setprofile", "settrace"])
def test_sync_bodies_run_under_a_debugger_s_hook(hook: str) -> None:
    """In a process of its own: on Python 3.11 a thread that hangs here spins for ever."""
    script = textwrap.dedent(f"""
        import asyncio, sys, threading, time

        def hook(frame, event, argument):
            return hook

        threading.{hook}(hook)
        from holdfast import Holdfast

        app = Holdfast(url="memory://")

        @app.task
        def short(n: int) -> int:
            return n

        @app.task(timeout=0.2, max_retries=0)
        def long() -> None:
            while True:
                time.sleep(0.01)

        async def main():
            handles = [await short.submit_async(n) for n in range(5)]
            handles.append(await long.submit_async())
            handles += [await short.submit_async(n) for n in range(5)]
            await app.worker(burst=True, concurrency=1).run()
            print(*[str(await handle.status_async()) for handle in handles])

        asyncio.run(main())
    """)

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )

    assert done.stdout.split() == ["completed"] * 5 + ["dead_letter"] + ["completed"] * 5
