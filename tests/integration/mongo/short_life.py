"""A process that does a little of everything to a store, and says what it was acknowledged.

Run with a URL. Each line it prints is a fact that must hold whatever becomes of it: a task that was
added, or completed.
`HOLDFAST_TEST_KILL_AT` says where it dies.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from holdfast.core.attempt import Claim, Report
from holdfast.core.gate import Gate, GateKind
from holdfast.core.query import TaskFilter
from holdfast.core.task import NewTask, Priority, TaskId, WorkerId
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.factories import new_task, release, success, worker_info

HELD = "held"
BATCH = "batch"
"""The name of the tasks that were submitted together."""
BATCH_SIZE = 4


class Later:
    """The host's clock, an hour ahead: patience with what was left behind is over."""

    def now_us(self) -> int:
        return time.time_ns() // 1000 + 3_600_000_000


def say(fact: str, task_id: TaskId) -> None:
    print(fact, task_id, flush=True)


class Life:
    """One worker, and what it does."""

    def __init__(self, store: MongoStore, worker: WorkerId) -> None:
        self._store = store
        self._worker = worker

    async def live(self) -> None:
        await self._lock_things()
        await self._submit_together()
        await self._repeat_a_key()
        await self._settle_late()
        await self._write_much()
        await self._operate()
        await self._wait_for_a_lock()
        await self._complete_in_a_transaction()
        await self._pass_gates()

    async def _lock_things(self) -> None:
        await self._add(new_task(lock=HELD))
        await self._add(new_task(lock=HELD, priority=Priority.HIGH, head_start=10**9))
        await self._add(new_task(lock=HELD))
        for claim in await self._claim():
            await self._complete(claim)

    async def _submit_together(self) -> None:
        locks = [HELD, "other", None, None]
        await self._add(*(new_task(name=BATCH, lock=lock) for lock in locks))

    async def _repeat_a_key(self) -> None:
        await self._add(new_task(idempotency_key="key"), window=0.001)
        await asyncio.sleep(0.01)
        await self._add(new_task(idempotency_key="key"))

    async def _settle_late(self) -> None:
        claims = await self._claim()
        await self._store.save([release(claims[0])])
        await self._store.save([success(claims[0])])
        for claim in claims[1:]:
            await self._complete(claim)

    async def _write_much(self) -> None:
        (claim, *_) = await self._claim()
        for _ in range(3):
            lines = tuple(f"line {number}" for number in range(70))
            report = Report(claim.task_id, claim.attempt, claim.worker_id, logs=lines)
            await self._store.report([report])
        await self._complete(claim)

    async def _operate(self) -> None:
        holder, _ = await self._add(new_task(lock="doc")), await self._add(new_task(lock="doc"))
        await self._store.cancel(TaskFilter(ids=(holder,)), limit=1)
        gone = await self._add(new_task(name="gone"), told=False)
        await self._store.cancel(TaskFilter(ids=(gone,)), limit=1)
        await self._store.discard(TaskFilter(ids=(gone,)), limit=1)

    async def _wait_for_a_lock(self) -> None:
        await self._add(new_task(lock="late", delay=0.01))
        await asyncio.sleep(0.02)
        for claim in await self._claim():
            await self._complete(claim)

    async def _complete_in_a_transaction(self) -> None:
        await self._add(new_task(lock="inside"), new_task(lock="inside"))
        for claim in await self._claim():
            async with self._store.transaction(claim) as inside:
                await inside.complete(success(claim))
            say("completed", claim.task_id)

    async def _pass_gates(self) -> None:
        limit, rate = Gate(GateKind.LIMIT, "l", 1), Gate(GateKind.RATE, "r", 2, 0.01)
        first = new_task(lock="doc", gates=(limit, rate))
        latch = Gate(GateKind.LATCH, first.id)
        await self._add(first, new_task(gates=(limit,)), new_task(gates=(latch, limit, rate)))
        for _ in range(3):
            for claim in await self._claim():
                await self._complete(claim)

    async def _add(self, *tasks: NewTask, window: float = 60.0, told: bool = True) -> TaskId:
        answers = await self._store.add(tasks, idempotency_window=window)
        for answer in answers:
            if told:
                say("added", answer.task_id)
        return answers[0].task_id

    async def _claim(self) -> Sequence[Claim]:
        claimed = await self._store.claim(
            self._worker, queues=None, capabilities=frozenset(), limit=10
        )
        return claimed.claims

    async def _complete(self, claim: Claim) -> None:
        assert not await self._store.save([success(claim)])
        say("completed", claim.task_id)


async def main(url: str) -> None:
    async with MongoStore(url) as store:
        info = worker_info()
        await store.register(info)
        await Life(store, info.id).live()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
