"""The store's numbers, read at most once a second however many ask."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import NamedTuple

from holdfast.client import Client
from holdfast.core.fleet import WorkerInfo
from holdfast.core.stats import Stats
from holdfast.core.task import Added, State
from holdfast.errors import HoldfastError

FRESH = 1.0
STALE = 3.0
"""Seconds after which numbers are waited for rather than refreshed behind the answer."""


class Numbers(NamedTuple):
    """What the store said, all at one time."""

    stats: Stats
    workers: tuple[WorkerInfo, ...]


class Gauge:
    """Remembers the numbers for a second, and what this process has added to the queues since."""

    def __init__(self) -> None:
        self._known: Numbers | None = None
        self._ready: dict[str, int] = {}
        self._since: Counter[str] = Counter()
        self._read_at = float("-inf")
        self._reading: asyncio.Task[Numbers] | None = None

    async def numbers(self, client: Client) -> Numbers:
        """Numbers that are a second old at most."""
        if self._known is not None and time.monotonic() - self._read_at <= FRESH:
            return self._known
        return await asyncio.shield(self._refresh(client))

    async def position(self, client: Client, queue: str, added: Added) -> int | None:
        """About where in its queue's line a new task stands; None if it is not in line.

        An estimate: what other processes submitted in the last second is not in it, nor are
        priorities. It must not cost a submit anything, least of all its answer.
        """
        if added.state is not State.QUEUED:
            return None
        age = time.monotonic() - self._read_at
        if age > STALE:
            try:
                await asyncio.shield(self._refresh(client))
            except HoldfastError:
                return None
            return max(1, self._ready.get(queue, 0))
        if age > FRESH:
            self._refresh(client)
        if added.created:
            self._since[queue] += 1
        return max(1, self._ready.get(queue, 0) + self._since[queue])

    def forget(self) -> None:
        """Ask again at the next question: whoever changed something wants to see it."""
        self._known, self._reading = None, None

    def _refresh(self, client: Client) -> asyncio.Task[Numbers]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(client))
            self._reading.add_done_callback(_looked_at)
        return self._reading

    async def _read(self, client: Client) -> Numbers:
        stats, workers = await client.stats(), await client.workers()
        self._known = Numbers(stats, tuple(workers))
        self._ready = {queue.queue: queue.ready for queue in stats.queues}
        self._since.clear()
        self._read_at = time.monotonic()
        return self._known


def _looked_at(task: asyncio.Task[Numbers]) -> None:
    """An error of a refresh that nobody waits for is no news: the next one tells."""
    if not task.cancelled():
        task.exception()
