"""The tasks of `bench/storms.py`, and what it does to them: `python -m bench.storm_tasks VERB N`.

Prints how many seconds the verb took.
"""

from __future__ import annotations

import asyncio
import sys
import time
from statistics import median

from holdfast import Holdfast, Limit
from holdfast.definitions.context import context
from holdfast.testing.eventually import eventually

AT_A_TIME = 2000
KEYS = 10_000
FIRSTS = 5

app = Holdfast()


def key(number: int) -> str:
    return f"key {number % KEYS}"


@app.task(name="plain")
async def plain(number: int) -> int:
    return number


@app.task(name="locked", lock=key)
async def locked(number: int) -> int:
    return number


@app.task(name="limited", concurrency=Limit(5, key=key))
async def limited(number: int) -> int:
    return number


@app.task(name="shared", fair_by=lambda number: "all" if number >= 0 else f"tenant {number}")
async def shared(number: int) -> int:
    return number


@app.task(name="stormy")
async def stormy(number: int) -> int:
    if context().attempt == 1:
        raise ValueError(f"no row {number % 10}")
    return number


BODIES = {task.name: task for task in (plain, locked, limited, shared, stormy)}


async def act(verb: str, tasks: int) -> float:
    """Do it; how many seconds that took."""
    begun = time.perf_counter()
    async with app:
        verbs = await app.verbs()
        match verb:
            case "requeue":
                assert await verbs.replay(state="completed") == tasks
            case "cancel":
                assert await verbs.cancel_many(state="queued") == tasks
            case "first":
                return await first_tasks()
            case _:
                body = BODIES[verb]
                for start in range(0, tasks, AT_A_TIME):
                    calls = [body.call(n) for n in range(start, min(tasks, start + AT_A_TIME))]
                    await app.submit_many_async(calls)
    return time.perf_counter() - begun


async def first_tasks() -> float:
    """While one tenant's backlog is worked off, how many seconds other tenants' first tasks wait
    for their start, by the store's clock: the median.
    """
    await eventually(lambda: app.count_async(state="completed", limit=1), within=60)
    waits = []
    for number in range(-FIRSTS, 0):
        handle = await shared.submit_async(number)
        await handle.result_async()
        task = await handle.task_async()
        assert task.started_at is not None
        waits.append((task.started_at - task.created_at).total_seconds())
    assert await app.count_async(state=["queued", "blocked"], limit=1), "the backlog was too short"
    return median(waits)


if __name__ == "__main__":
    print(asyncio.run(act(sys.argv[1], int(sys.argv[2]))))
