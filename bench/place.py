"""A store that is worked by hand, without a worker: add, claim and settle, batch by batch."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from holdfast.core.attempt import Claim
from holdfast.core.fleet import WorkerInfo
from holdfast.core.ids import uuid7
from holdfast.core.lifecycle import Succeeded, settle
from holdfast.core.task import NewTask, TaskId, WorkerId
from holdfast.ports.store import Store

FILL = 5000
WORKER = WorkerId("bench-worker")


@dataclass(frozen=True, slots=True)
class Place:
    """One open store, and a worker in it."""

    store: Store

    async def enter(self) -> None:
        """Register the worker; before anything else."""
        await self.store.register(worker_info(WORKER))

    async def add(self, number: int) -> None:
        """New tasks, in bulk."""
        for start in range(0, number, FILL):
            tasks = [
                NewTask(id=next(_IDS), name="noop", payload=b'{"n":%d}' % n)
                for n in range(min(FILL, number - start))
            ]
            await self.store.add(tasks, idempotency_window=0)

    async def claim(self, limit: int) -> Sequence[Claim]:
        claimed = await self.store.claim(WORKER, queues=None, capabilities=frozenset(), limit=limit)
        return claimed.claims

    async def settle(self, claims: Sequence[Claim]) -> None:
        outcome = Succeeded(b"1")
        await self.store.save(
            [settle(claim, outcome, backoff=lambda _: 0.0, crash_limit=3) for claim in claims]
        )

    async def work(self, batch: int) -> float:
        """Claim and settle one batch; the seconds it took. There must be so many."""
        began = time.perf_counter()
        claims = await self.claim(batch)
        await self.settle(claims)
        seconds = time.perf_counter() - began
        assert len(claims) == batch
        return seconds


def _ids() -> Iterator[TaskId]:
    """Ids that never go backwards, as a client makes them."""
    start = time.time_ns() // 1_000_000 << 12
    for tick in count(start):
        yield uuid7(tick >> 12, (tick & 0xFFF) << 62 | random.getrandbits(62))


_IDS = _ids()


def worker_info(name: str) -> WorkerInfo:
    """A worker that may take anything."""
    return WorkerInfo(
        id=WorkerId(name),
        host="bench",
        pid=os.getpid(),
        version="0",
        queues=None,
        capabilities=frozenset(),
        capacity=FILL,
    )
