"""Procrastinate: PostgreSQL by psycopg, one transaction for each job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import procrastinate

from bench.peers import bodies, driver

app: Any = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=driver.POSTGRES, min_size=1, max_size=12),
    import_paths=[__name__],
)
noop: Any = app.task(name="noop")(bodies.async_noop)
stamp: Any = app.task(name="stamp")(bodies.async_stamp)


class Queue(driver.Driver):
    async def install(self) -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        await app.open_async()

    async def submit(self, count: int) -> None:
        for number in range(count):
            await noop.defer_async(number=number)

    async def bulk(self, numbers: Sequence[int]) -> None:
        await noop.batch_defer_async(*[{"number": number} for number in numbers])

    async def send(self, sent: float) -> None:
        await stamp.defer_async(sent=sent)

    async def finished(self) -> int:
        query = "SELECT count(*) AS seen FROM procrastinate_jobs WHERE status = 'succeeded'"
        return int((await app.connector.execute_query_one_async(query))["seen"])
