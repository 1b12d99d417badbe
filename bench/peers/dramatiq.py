"""Dramatiq: Redis as broker, and as result backend where results are kept."""

from __future__ import annotations

from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from bench.peers import bodies, driver

broker: Any = RedisBroker(url=driver.REDIS)
options: dict[str, bool] = {}
if driver.KEEP_RESULTS:
    broker.add_middleware(Results(backend=RedisBackend(url=driver.REDIS)))
    options["store_results"] = True
dramatiq.set_broker(broker)


def run(number: int) -> int | None:
    """Without a result backend Dramatiq warns of each value that it drops."""
    return bodies.noop(number) if driver.KEEP_RESULTS else bodies.noop(number) and None


noop: Any = dramatiq.actor(actor_name="noop", **options)(run)
stamp: Any = dramatiq.actor(actor_name="stamp")(bodies.stamp)


class Queue(driver.Driver):
    async def submit(self, count: int) -> None:
        for number in range(count):
            noop.send(number)

    async def send(self, sent: float) -> None:
        stamp.send(sent)

    async def finished(self) -> int:
        keys = broker.client.scan_iter(count=5000)
        return sum(1 for key in keys if not key.startswith(b"dramatiq:"))
