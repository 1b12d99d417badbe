"""Submits of one key that race, and submitters that die: one run, of the newest."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Debounce, Holdfast, State, Throttle
from holdfast.core.task import Reason

RACERS = 32

DIES = """
import os, sys
from holdfast import Debounce, Holdfast
from holdfast.flow import coalescing

async def dies(store, older):
    os._exit(9)

app = Holdfast(url=sys.argv[1])

@app.task(name="index", debounce=Debounce("1s", key="{doc}"))
def index(doc: int, n: int) -> None: ...

coalescing.supersede = dies
index.submit(1, 2)
"""


@pytest.fixture(params=["sqlite", "fresh_schema", "fresh_mongo"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'tasks.db'}"
    found: str = request.getfixturevalue(request.param)
    return found


async def test_of_debounced_submits_that_race_one_runs_and_all_others_are_superseded(
    url: str,
) -> None:
    ran: list[int] = []
    apps = [Holdfast(url=url, poll="100ms") for _ in range(2)]

    async def index(doc: int, n: int) -> None:
        ran.append(n)

    tasks = [app.task(name="index", debounce=Debounce("2s", key="{doc}"))(index) for app in apps]
    async with apps[0], apps[1]:
        handles = await asyncio.gather(*(tasks[n % 2].submit_async(1, n) for n in range(RACERS)))
        await asyncio.gather(*(app.run_worker(burst=True, concurrency=2) for app in apps))
        while await apps[0].count_async(state=("queued", "running")):
            await apps[0].run_worker(burst=True)
        ended = [await handle.task_async() for handle in handles]

    completed = [n for n, task in enumerate(ended) if task.state is State.COMPLETED]
    assert completed == ran
    assert len(ran) == 1
    superseded = [task for task in ended if task.state is State.CANCELLED]
    assert len(superseded) == RACERS - 1
    assert {task.reason for task in superseded} == {Reason.SUPERSEDED}


async def test_of_throttled_submits_that_race_one_makes_a_task(url: str) -> None:
    apps = [Holdfast(url=url) for _ in range(2)]

    async def report(n: int) -> None: ...

    tasks = [app.task(name="report", throttle=Throttle("1h"))(report) for app in apps]
    async with apps[0], apps[1]:
        handles = await asyncio.gather(*(tasks[n % 2].submit_async(n) for n in range(RACERS)))

        assert await apps[0].count_async() == 1
    assert len({handle.id for handle in handles}) == 1
    assert sorted(str(handle.outcome) for handle in handles) == ["created"] + ["throttled"] * 31


async def test_a_submitter_that_dies_before_it_cancels_the_older_one_costs_nothing(
    url: str,
) -> None:
    ran: list[int] = []
    app = Holdfast(url=url, poll="100ms")

    @app.task(name="index", debounce=Debounce("1s", key="{doc}"))
    async def index(doc: int, n: int) -> None:
        ran.append(n)

    async with app:
        first = await index.submit_async(1, 1)
        died = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", DIES, url], timeout=60, check=False
        )
        assert died.returncode == 9
        assert await app.count_async(state="queued") == 2
        while await app.count_async(state=("queued", "running")):
            await app.run_worker(burst=True)
        task = await first.task_async()

    assert ran == [2]
    assert (task.state, task.reason) == (State.CANCELLED, Reason.SUPERSEDED)
