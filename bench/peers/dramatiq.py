"""Dramatiq: Redis as broker, and as result backend where results are kept."""

from __future__ import annotations

from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits.backends import RedisBackend as Counters
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from bench.peers import bodies, driver

broker: Any = RedisBroker(url=driver.REDIS)
options: dict[str, bool] = {}
if driver.KEEP_RESULTS:
    broker.add_middleware(Results(backend=RedisBackend(url=driver.REDIS)))
    broker.add_middleware(GroupCallbacks(Counters(url=driver.REDIS)))
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

    async def compose(self, kind: str, count: int) -> None:
        match kind:
            case "chain":
                links = (noop.message() for _ in range(count))
                dramatiq.pipeline([noop.message(0), *links]).run()
            case "group":
                members = dramatiq.group(noop.message(n) for n in range(count))
                members.add_completion_callback(noop.message(count))
                members.run()
            case _:
                await self.submit(count + 1)

    async def finished(self) -> int:
        keys = broker.client.scan_iter(count=5000)
        return sum(1 for key in keys if not key.startswith(b"dramatiq:"))
