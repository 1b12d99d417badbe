"""Does the claim grow dearer with the backlog or with history? Asked of the store, batch by batch.

One file grows: first `small` waiting tasks, then a deep backlog, then as many finished ones
besides. At each size the same thing is timed: claims of `BATCH` tasks (and, apart, of one task),
each in its own commit. What was claimed is handed back before the next size, so sizes differ in
nothing but size.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.attempt import Claim
from holdfast.core.fleet import WorkerInfo
from holdfast.core.ids import uuid7
from holdfast.core.lifecycle import Outcome, Released, Succeeded, settle
from holdfast.core.task import NewTask, State, WorkerId
from holdfast.stores.sqlite.store import SQLiteStore

BATCH = 100
FILL = 5000
WORKER = WorkerId("bench-worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCost:
    """Microseconds of one claim at one size: median of many."""

    waiting: int
    finished: int
    per_task_in_batches: float
    single: float


async def claim_costs(
    path: Path, sizes: tuple[tuple[int, int], ...], rounds: int
) -> list[ClaimCost]:
    """Grow one store through `sizes` of (waiting, finished) and time claims at each."""
    costs = []
    async with SQLiteStore(path) as store:
        await store.register(_worker())
        for waiting, finished in sizes:
            await _grow(store, waiting, finished)
            costs.append(await _measure(store, waiting, finished, rounds))
    return costs


async def _grow(store: SQLiteStore, waiting: int, finished: int) -> None:
    stats = await store.stats()
    done = stats.states.get(State.COMPLETED, 0)
    while done < finished:
        await store.add(_tasks(FILL), idempotency_window=0)
        claims = await _claim(store, FILL)
        await _settle(store, claims, Succeeded(b"1"))
        done += len(claims)
    ready = sum(queue.ready for queue in (await store.stats()).queues)
    while ready < waiting:
        new = min(FILL, waiting - ready)
        await store.add(_tasks(new), idempotency_window=0)
        ready += new


async def _measure(store: SQLiteStore, waiting: int, finished: int, rounds: int) -> ClaimCost:
    batches, singles = [], []
    for _ in range(rounds):
        batches.append(await _timed(store, BATCH) / BATCH)
        singles.append(await _timed(store, 1))
    return ClaimCost(
        waiting=waiting,
        finished=finished,
        per_task_in_batches=statistics.median(batches) * 1e6,
        single=statistics.median(singles) * 1e6,
    )


async def _timed(store: SQLiteStore, limit: int) -> float:
    began = time.perf_counter()
    claims = await _claim(store, limit)
    seconds = time.perf_counter() - began
    assert len(claims) == limit
    await _settle(store, claims, Released())
    return seconds


async def _claim(store: SQLiteStore, limit: int) -> list[Claim]:
    claimed = await store.claim(WORKER, queues=None, capabilities=frozenset(), limit=limit)
    return list(claimed.claims)


async def _settle(store: SQLiteStore, claims: list[Claim], outcome: Outcome) -> None:
    await store.save(
        [settle(claim, outcome, backoff=lambda _: 0.0, crash_limit=3) for claim in claims]
    )


def _tasks(count: int) -> list[NewTask]:
    now = time.time_ns() // 1_000_000
    return [
        NewTask(id=uuid7(now, random.getrandbits(74)), name="noop", payload=b'{"n":%d}' % number)
        for number in range(count)
    ]


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


def measure(path: Path, sizes: tuple[tuple[int, int], ...], rounds: int = 60) -> list[ClaimCost]:
    """`claim_costs` for callers without a loop."""
    return asyncio.run(claim_costs(path, sizes, rounds))
