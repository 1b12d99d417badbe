"""The tasks of `bench/flows.py`, and how they come: `python -m bench.flow_tasks VERB N`."""

from __future__ import annotations

import asyncio
import sys

from bench.peers.bodies import STEPS
from holdfast import Context, Holdfast, chain, group
from holdfast.core.query import Order
from holdfast.core.task import Task

AT_A_TIME = 2000

app = Holdfast()


@app.task(name="plain")
async def plain(number: int) -> int:
    return number


@app.task(name="workflow")
async def workflow(ctx: Context, number: int) -> int:
    for n in range(STEPS):
        number = await ctx.step(f"step {n}", int, number)
    return number


@app.task(name="sleeper")
async def sleeper(ctx: Context, number: int) -> int:
    await ctx.sleep("1d")
    return number


async def submit(verb: str, tasks: int) -> None:
    """Store what a worker will run."""
    async with app:
        match verb:
            case "chain":
                links = (plain.s() for _ in range(tasks - 1))
                await chain(plain.s(1), *links).submit_async()
            case "group":
                await group(plain.s(n) for n in range(tasks)).submit_async()
            case _:
                body = {"plain": plain, "workflow": workflow, "sleeper": sleeper}[verb]
                for start in range(0, tasks, AT_A_TIME):
                    calls = [body.call(n) for n in range(start, min(tasks, start + AT_A_TIME))]
                    await app.submit_many_async(calls)


async def span() -> float:
    """Seconds from the first start to the last end."""
    async with app:
        first, last = [await _first(order) for order in (Order.FIRST_ENDED, Order.LAST_ENDED)]
        assert first.started_at is not None
        assert last.finished_at is not None
        return (last.finished_at - first.started_at).total_seconds()


async def _first(order: Order) -> Task:
    oldest = order is Order.FIRST_ENDED
    page = await (await app.verbs()).list(limit=1, oldest_first=oldest, by_end=True)
    return page.tasks[0]


if __name__ == "__main__":
    if sys.argv[1] == "span":
        print(asyncio.run(span()))
    else:
        asyncio.run(submit(sys.argv[1], int(sys.argv[2])))
