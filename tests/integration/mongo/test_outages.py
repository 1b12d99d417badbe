"""MongoDB is killed under load and comes back: nothing is lost, nothing recorded twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import pytest
from tests.kit.servers.mongo import MongoServer

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, State, TaskId, WorkerId
from holdfast.errors import StoreUnavailable
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import new_task, release, success, worker_info

KILLS = 3
WORKERS = 2
MORE = 20
PATIENCE = 60.0
LOCKS = ("a", "b")
T = TypeVar("T")

pytestmark = pytest.mark.timeout(180)


async def insist(act: Callable[[], Awaitable[T]]) -> T:
    """Repeat with the same arguments until it is answered."""
    while True:
        try:
            return await act()
        except StoreUnavailable:
            await asyncio.sleep(0.05)


class Load:
    """One submitter and a few workers, which stop when all is done."""

    def __init__(self, store: MongoStore) -> None:
        self.acknowledged: list[TaskId] = []
        self.completed: Counter[TaskId] = Counter()
        self.is_over = asyncio.Event()
        self._store = store
        self._held: set[str] = set()

    async def goes_on(self) -> None:
        """Wait until more was acknowledged, and more completed, than now."""
        submitted, done = len(self.acknowledged) + MORE, self.completed.total() + MORE
        await eventually(
            lambda: len(self.acknowledged) >= submitted and self.completed.total() >= done,
            within=PATIENCE,
        )

    async def submit(self) -> None:
        while not self.is_over.is_set():
            lock = LOCKS[len(self.acknowledged) % 2] if len(self.acknowledged) % 5 == 0 else None
            batch = [new_task(lock=lock), new_task()]
            await insist(partial(self._store.add, batch, idempotency_window=60))
            self.acknowledged += [new.id for new in batch]
            await asyncio.sleep(0.02)

    async def work(self) -> None:
        info = worker_info()
        await insist(lambda: self._store.register(info))
        while not (self.is_over.is_set() and await self._is_drained()):
            claims = await self._claim(info.id)
            self._hold(claims)
            await insist(partial(self._save, [success(one) for one in claims]))
            self.completed.update(claim.task_id for claim in claims)
            if not claims:
                await asyncio.sleep(0.05)

    async def _claim(self, worker: WorkerId) -> Sequence[Claim]:
        """Claim; after an unknown outcome hand back what was started and not heard of."""
        try:
            claimed = await self._store.claim(
                worker, queues=None, capabilities=frozenset(), limit=5
            )
        except StoreUnavailable:
            mine = TaskFilter(worker_id=worker, states=frozenset({State.RUNNING}))
            page = await insist(lambda: self._store.list(mine, limit=100))
            strays = [release(Claim.of(task)) for task in page.tasks]
            await insist(lambda: self._save(strays))
            return ()
        return claimed.claims

    def _hold(self, claims: Sequence[Claim]) -> None:
        """No lock may be in two hands. (What is saved below is let go by then.)"""
        keys = [claim.lock for claim in claims if claim.lock is not None]
        assert len(keys) == len(set(keys))
        assert not self._held & set(keys)
        self._held |= set(keys)

    async def _save(self, settlements: Sequence[Settlement]) -> None:
        for one in settlements:
            task = await self._store.get(one.task_id)
            assert task is not None
            self._held.discard(task.lock or "")
        assert not await self._store.save(settlements)

    async def _is_drained(self) -> bool:
        unfinished = TaskFilter(states=frozenset({State.QUEUED, State.BLOCKED, State.RUNNING}))
        return await insist(lambda: self._store.count(unfinished, limit=1)) == 0


async def test_a_server_that_is_killed_under_load_loses_nothing_and_doubles_nothing(
    own_mongo: MongoServer,
) -> None:
    async with MongoStore(own_mongo.url()) as store:
        load = Load(store)
        async with asyncio.TaskGroup() as group:
            group.create_task(load.submit())
            for _ in range(WORKERS):
                group.create_task(load.work())
            for _ in range(KILLS):
                await load.goes_on()
                await asyncio.to_thread(own_mongo.restart)
            await load.goes_on()
            load.is_over.set()

        assert set(load.completed) >= set(load.acknowledged)
        assert set(load.completed.values()) == {1}
        for task_id in load.acknowledged:
            history = await store.history(task_id)
            assert history is not None
            ends = [attempt.ended for attempt in history.attempts]
            assert ends.count(AttemptEnd.COMPLETED) == 1
            assert set(ends) <= {AttemptEnd.COMPLETED, AttemptEnd.RELEASED}
        assert not await store.check()
