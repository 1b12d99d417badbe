"""Chancy: PostgreSQL by psycopg, states written in batches."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import chancy
from chancy.executors.asyncex import AsyncExecutor

from bench.peers import bodies, driver

quiet = logging.getLogger("bench")
quiet.setLevel(logging.WARNING)
app: Any = chancy.Chancy(driver.POSTGRES, log=quiet)
noop: Any = chancy.job()(bodies.async_noop)
stamp: Any = chancy.job()(bodies.async_stamp)


class Queue(driver.Driver):
    async def install(self) -> None:
        async with app:
            await app.migrate()
            await app.declare(
                chancy.Queue(
                    "default",
                    concurrency=100,
                    executor=f"{AsyncExecutor.__module__}.{AsyncExecutor.__qualname__}",
                    eager_polling=True,
                )
            )

    async def open(self) -> None:
        await app.__aenter__()

    async def submit(self, count: int) -> None:
        for number in range(count):
            await app.push(noop.job.with_kwargs(number=number))

    async def bulk(self, numbers: Sequence[int]) -> None:
        jobs = [noop.job.with_kwargs(number=number) for number in numbers]
        async for _ in app.push_many(jobs):
            pass

    async def send(self, sent: float) -> None:
        await app.push(stamp.job.with_kwargs(sent=sent))

    async def finished(self) -> int:
        query = "SELECT count(*) AS seen FROM chancy_jobs WHERE state = 'succeeded'"
        async with app.pool.connection() as connection:
            row = await (await connection.execute(query)).fetchone()
        return int(row["seen"] if isinstance(row, dict) else row[0])
