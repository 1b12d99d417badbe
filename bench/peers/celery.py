"""Celery: Redis as broker, and as result backend where results are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import celery
import redis

from bench.peers import bodies, driver

app: Any = celery.Celery("bench", broker=driver.REDIS)
app.conf.update(
    result_backend=driver.REDIS if driver.KEEP_RESULTS else None,
    task_ignore_result=not driver.KEEP_RESULTS,
    worker_prefetch_multiplier=128,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
)
noop: Any = app.task(name="noop")(bodies.noop)
stamp: Any = app.task(name="stamp", ignore_result=True)(bodies.stamp)


class Queue(driver.Driver):
    async def submit(self, count: int) -> None:
        for number in range(count):
            noop.delay(number)

    async def bulk(self, numbers: Sequence[int]) -> None:
        """A group is what Celery has for many: its calls share one producer."""
        celery.group(noop.si(number) for number in numbers).apply_async()

    async def send(self, sent: float) -> None:
        stamp.delay(sent)

    async def compose(self, kind: str, count: int) -> None:
        match kind:
            case "chain":
                celery.chain(noop.s(0), *(noop.s() for _ in range(count))).apply_async()
            case "group":
                celery.chord([noop.s(n) for n in range(count)], noop.si(count)).apply_async()
            case _:
                await self.bulk(range(count + 1))

    async def finished(self) -> int:
        client: Any = redis.Redis.from_url(driver.REDIS)
        return sum(1 for _ in client.scan_iter("celery-task-meta-*", count=5000))
