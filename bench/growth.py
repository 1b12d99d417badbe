"""Do claims and settlements grow dearer with the backlog, or with history? Asked of the store.

One store is built for each size. Then they take turns: a round times a claim of `BATCH` tasks, its
settlement and a claim of one task in every store, so that a slow moment of the machine meets all of
them alike. What a round took is filled up again, untimed: sizes stay as they are.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from holdfast.core.attempt import Claim
from holdfast.core.fleet import WorkerInfo
from holdfast.core.ids import uuid7
from holdfast.core.lifecycle import Succeeded, settle
from holdfast.core.task import NewTask, TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.wiring import open_store

BATCH = 100
FILL = 5000
ROUNDS = 60
WORKER = WorkerId("bench-worker")


class Size(NamedTuple):
    """How many tasks wait, and how many have finished."""

    waiting: int
    finished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Microseconds at one size, medians of all rounds; the first two are per task of a batch."""

    waiting: int
    finished: int
    claim: float
    settle: float
    single_claim: float


@dataclass(slots=True)
class _Place:
    """A store of one size, and what was measured there."""

    store: Store
    size: Size
    claims: list[float] = field(default_factory=list)
    settles: list[float] = field(default_factory=list)
    singles: list[float] = field(default_factory=list)

    async def build(self) -> None:
        await self.store.register(_worker())
        for start in range(0, self.size.finished, FILL):
            await self._add(min(FILL, self.size.finished - start))
            await self._settle(await self._claim(FILL))
        for start in range(0, self.size.waiting, FILL):
            await self._add(min(FILL, self.size.waiting - start))

    async def round(self) -> None:
        began = time.perf_counter()
        claims = await self._claim(BATCH)
        claimed = time.perf_counter()
        await self._settle(claims)
        settled = time.perf_counter()
        single = await self._claim(1)
        ended = time.perf_counter()
        assert (len(claims), len(single)) == (BATCH, 1)
        self.claims.append((claimed - began) / BATCH)
        self.settles.append((settled - claimed) / BATCH)
        self.singles.append(ended - settled)
        await self._settle(single)
        await self._add(BATCH + 1)

    def cost(self) -> Cost:
        return Cost(
            waiting=self.size.waiting,
            finished=self.size.finished,
            claim=statistics.median(self.claims) * 1e6,
            settle=statistics.median(self.settles) * 1e6,
            single_claim=statistics.median(self.singles) * 1e6,
        )

    async def _add(self, number: int) -> None:
        tasks = [
            NewTask(id=next(_IDS), name="noop", payload=b'{"n":%d}' % n) for n in range(number)
        ]
        await self.store.add(tasks, idempotency_window=0)

    async def _claim(self, limit: int) -> Sequence[Claim]:
        claimed = await self.store.claim(WORKER, queues=None, capabilities=frozenset(), limit=limit)
        return claimed.claims

    async def _settle(self, claims: Sequence[Claim]) -> None:
        outcome = Succeeded(b"1")
        await self.store.save(
            [settle(claim, outcome, backoff=lambda _: 0.0, crash_limit=3) for claim in claims]
        )


def _ids() -> Iterator[TaskId]:
    """Ids that never go backwards, as a client makes them."""
    start = time.time_ns() // 1_000_000 << 12
    for tick in count(start):
        yield uuid7(tick >> 12, (tick & 0xFFF) << 62 | random.getrandbits(62))


_IDS = _ids()


def _worker() -> WorkerInfo:
    return WorkerInfo(
        id=WORKER,
        host="bench",
        pid=os.getpid(),
        version="0",
        queues=None,
        capabilities=frozenset(),
        capacity=BATCH,
    )


async def _measure(urls: Sequence[str], sizes: Sequence[Size], rounds: int) -> list[Cost]:
    async with AsyncExitStack() as stack:
        places = [
            _Place(await stack.enter_async_context(open_store(url)), size)
            for url, size in zip(urls, sizes, strict=True)
        ]
        for place in places:
            await place.build()
        for _ in range(rounds):
            for place in places:
                await place.round()
        return [place.cost() for place in places]


def measure(urls: Sequence[str], sizes: Sequence[Size], rounds: int = ROUNDS) -> list[Cost]:
    """The cost at each size, each in the empty store at the URL beside it."""
    return asyncio.run(_measure(urls, sizes, rounds))
