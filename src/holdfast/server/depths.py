"""How much is ready by what it is worth now: waiting makes tasks more urgent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from holdfast.client import Client
from holdfast.core.stats import EffectiveDepth, QueueStats
from holdfast.core.task import Priority

MOST_AGED: Final = 10_000
EPOCH: Final = datetime.fromtimestamp(0, UTC)


async def effective_depths(
    client: Client, queues: Iterable[QueueStats], queue: str | None = None
) -> Mapping[Priority, EffectiveDepth]:
    """What is ready by what waiting has made of its priority, of one queue or of all together.

    The store knows the depths by the priority that tasks came with. Those of one that are worth
    more are counted, `MOST_AGED` at the most, and only if the oldest has waited long enough.
    """
    found = {priority: EffectiveDepth() for priority in Priority}
    depths = [depth for each in queues for depth in each.depths]
    now = (await client.now() - EPOCH) // timedelta(microseconds=1)
    aging = client.settings.aging
    for priority in Priority:
        same = [depth for depth in depths if depth.priority is priority]
        left = sum(depth.ready for depth in same)
        oldest = max((depth.oldest_seconds or 0.0 for depth in same), default=0.0)
        counted = 0
        for other, seconds in aging.steps(priority):
            if left == counted or oldest < seconds:
                continue
            number = await client.store.count_ready(
                queue=queue,
                priority=priority,
                rank=now - aging.head_start(other),
                limit=MOST_AGED,
            )
            found[other].add(number - counted, oldest)
            found[other].is_capped |= number == MOST_AGED
            # What has not come so far has waited for less.
            counted, oldest = number, min(oldest, seconds)
        found[priority].add(left - counted, oldest)
    return found
