"""The workers as people are shown them: as they are now, not as they were at their last beat."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.core.fleet import ALIVE, HTTP, WorkerInfo
from holdfast.core.query import TaskFilter, running_on
from holdfast.ports.store import Store

MOST_COUNTED = 100
"""How many workers' tasks are counted when workers are listed: each costs the store a question."""


async def as_now(
    store: Store, workers: Sequence[WorkerInfo], *, now: datetime, lease: float
) -> Sequence[WorkerInfo]:
    """These workers, by whether they still beat and what the store has leased to them."""
    workers = [worker.seen(now=now, lease=lease) for worker in workers]
    alive = [worker for worker in workers if worker.status in ALIVE]
    if len(alive) > MOST_COUNTED:
        alive = [worker for worker in alive if worker.kind == HTTP]
    counts = await asyncio.gather(
        *(store.count(running_on(worker.id), limit=worker.capacity) for worker in alive)
    )
    loads = {worker.id: load for worker, load in zip(alive, counts, strict=True)}
    return [replace(worker, load=loads.get(worker.id, worker.load)) for worker in workers]


async def knows_queue(store: Store, queue: str) -> bool:
    """Whether a task is kept in this queue or a live worker names it."""
    for worker in await store.workers():
        if worker.status in ALIVE and queue in (worker.queues or ()):
            return True
    return bool(await store.count(TaskFilter(queue=queue), limit=1))
