"""The store's numbers, read at most once a second however many ask."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from holdfast.client import Client
from holdfast.core.fleet import WorkerInfo
from holdfast.core.stats import Stats, place_in_line
from holdfast.core.task import Added, Priority, State
from holdfast.errors import HoldfastError

FRESH = 1.0
STALE = 3.0
"""Seconds after which numbers are waited for rather than refreshed behind the answer."""

T = TypeVar("T")


class Numbers(NamedTuple):
    """What the store said."""

    stats: Stats
    workers: Sequence[WorkerInfo]


class Remembered(Generic[T]):
    """An answer of the store, and how old it is."""

    def __init__(self) -> None:
        self.known: T | None = None
        self._read_at = float("-inf")
        self._reading: asyncio.Task[T] | None = None

    @property
    def age(self) -> float:
        return time.monotonic() - self._read_at

    async def get(self, read: Callable[[], Awaitable[T]]) -> T:
        """The answer, a second old at most."""
        if self.known is not None and self.age <= FRESH:
            return self.known
        return await asyncio.shield(self.refresh(read))

    def refresh(self, read: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        """Ask, unless that is under way."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(read))
            self._reading.add_done_callback(_looked_at)
        return self._reading

    def forget(self) -> None:
        self._read_at, self._reading = float("-inf"), None

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        self.known = found = await read()
        self._read_at = time.monotonic()
        return found


class Gauge:
    """Remembers the numbers for a second, and what this process has added to the queues since."""

    def __init__(self) -> None:
        self._stats = Remembered[Stats]()
        self._workers = Remembered[Sequence[WorkerInfo]]()
        self._since: Counter[tuple[str, Priority]] = Counter()

    async def numbers(self, client: Client) -> Numbers:
        """Numbers that are a second old at most."""
        stats = await self._stats.get(lambda: self._read(client))
        return Numbers(stats, await self._workers.get(client.workers))

    async def look(self, client: Client) -> None:
        """Before a submit whose place in line will be told: it must cost next to nothing, so
        numbers that are not too old will do and are refreshed beside.
        """
        if self._stats.age <= FRESH:
            return
        reading = self._stats.refresh(lambda: self._read(client))
        if self._stats.age > STALE:
            with suppress(HoldfastError):
                await asyncio.shield(reading)

    def position(self, client: Client, queue: str, priority: Priority, added: Added) -> int | None:
        """Where in its queue's line a new task stands, by rank; None if it is not in line, or if
        that cannot be told from the numbers at hand. What other processes did in the last second is
        not in it.
        """
        stats = self._stats.known
        if stats is None or added.state is not State.QUEUED or not added.created:
            return None
        self._since[queue, priority] += 1
        depths = next((each.depths for each in stats.queues if each.queue == queue), ())
        since = {each: self._since[queue, each] for each in Priority}
        return place_in_line(priority, depths, since, client.settings.aging, at_most_old=STALE)

    def forget(self) -> None:
        """Ask again at the next question: whoever changed something wants to see it."""
        self._stats.forget()
        self._workers.forget()

    async def _read(self, client: Client) -> Stats:
        stats = await client.stats()
        self._since.clear()
        return stats


def _looked_at(task: asyncio.Task[T]) -> None:
    """An error of a refresh that nobody waits for is no news: the next one tells."""
    if not task.cancelled():
        task.exception()
