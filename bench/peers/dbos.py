"""DBOS: workflows on PostgreSQL, run by threads of the process that starts them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dbos

from bench.peers import bodies, driver

THREADS = 8


def _step(number: int) -> int:
    return int(number)


def _workflow(number: int) -> int:
    bodies.noop(number)
    for _ in range(bodies.STEPS):
        number = step(number)
    return number


step: Any = dbos.DBOS.step(name="step")(_step)
plain: Any = dbos.DBOS.workflow(name="plain")(bodies.noop)
workflow: Any = dbos.DBOS.workflow(name="workflow")(_workflow)


class Queue(driver.Driver):
    async def open(self) -> None:
        url = {"system_database_url": driver.POSTGRES}
        dbos.DBOS(config={"name": "bench", "log_level": "WARNING", **url})
        await asyncio.to_thread(dbos.DBOS.launch)

    async def compose(self, kind: str, count: int) -> None:
        """Run them too; the end is when the last has returned, its result stored."""
        await asyncio.to_thread(_run, {"plain": plain, "workflow": workflow}[kind], count)
        bodies.noop(count)


def _run(body: Any, count: int) -> None:
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(body, range(count)))
