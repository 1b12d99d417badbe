"""RQ: Redis. A fork for each job is its default; SimpleWorker runs jobs in the worker itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis
import rq

from bench.peers import bodies, driver

connection: Any = redis.Redis.from_url(driver.REDIS) if driver.REDIS else None
LIFE = 600 if driver.KEEP_RESULTS else 0


class Queue(driver.Driver):
    async def open(self) -> None:
        self.queue: Any = rq.Queue(connection=connection)

    async def submit(self, count: int) -> None:
        for number in range(count):
            self.queue.enqueue(bodies.noop, number, result_ttl=LIFE)

    async def bulk(self, numbers: Sequence[int]) -> None:
        prepared = [
            rq.Queue.prepare_data(bodies.noop, (number,), result_ttl=LIFE) for number in numbers
        ]
        self.queue.enqueue_many(prepared)

    async def send(self, sent: float) -> None:
        self.queue.enqueue(bodies.stamp, sent, result_ttl=0)

    async def finished(self) -> int:
        return sum(1 for _ in connection.scan_iter("rq:results:*", count=5000))
