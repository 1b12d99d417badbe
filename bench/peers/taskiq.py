"""Taskiq: a Redis stream as broker, and Redis as result backend where results are kept."""

from __future__ import annotations

from typing import Any

import redis
import taskiq_redis

from bench.peers import bodies, driver

broker: Any = taskiq_redis.RedisStreamBroker(driver.REDIS, consumer_id="0")
if driver.KEEP_RESULTS:
    kept = taskiq_redis.RedisAsyncResultBackend(driver.REDIS, result_ex_time=600)
    broker = broker.with_result_backend(kept)
noop: Any = broker.task(task_name="noop")(bodies.async_noop)
stamp: Any = broker.task(task_name="stamp")(bodies.async_stamp)


class Queue(driver.Driver):
    async def open(self) -> None:
        await broker.startup()

    async def submit(self, count: int) -> None:
        for number in range(count):
            await noop.kiq(number)

    async def send(self, sent: float) -> None:
        await stamp.kiq(sent)

    async def finished(self) -> int:
        client: Any = redis.Redis.from_url(driver.REDIS)
        return int(client.dbsize()) - 1
