"""Huey: Redis or SQLite, one transaction for each step of a task.

Huey leaves SQLite's `synchronous` at its default, which is FULL, as ours.
"""

from __future__ import annotations

from typing import Any

import huey

from bench.peers import bodies, driver


def make() -> Any:
    if driver.REDIS:
        return huey.RedisHuey("bench", url=driver.REDIS, results=driver.KEEP_RESULTS)
    return huey.SqliteHuey(
        "bench", filename=str(driver.SQLITE / "huey.db"), results=driver.KEEP_RESULTS
    )


app: Any = make()
noop: Any = app.task()(bodies.noop)
stamp: Any = app.task()(bodies.stamp)


class Queue(driver.Driver):
    async def submit(self, count: int) -> None:
        for number in range(count):
            noop(number)

    async def send(self, sent: float) -> None:
        stamp(sent)

    async def finished(self) -> int:
        return int(app.result_count())
