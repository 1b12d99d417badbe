"""What every suite stands on: the fixtures a store's test class gives, and short words for steps.

A subclass gives `store` (open, with the `clock` fixture as its clock). A store with the ability
`many_processes` also gives `open_another` (another handle on the same data) and `process_url`
(the URL of a fresh, empty place that `testing.processes.open_url` can open, with the host's clock).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

import pytest

from holdfast.core.attempt import Attempt, Claim, Event, History, Settlement
from holdfast.core.fleet import WorkerStatus
from holdfast.core.query import TaskFilter
from holdfast.core.task import Added, NewTask, State, Task, TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import WINDOW, new_task, worker_id, worker_info

EVERYTHING = TaskFilter()
MANY = 1_000
"""A limit that no test reaches."""

Settle = Callable[[Claim], Settlement]
OpenAnother = Callable[[], Awaitable[Store]]


class StoreSuite:
    """Subclass this for a new promise; subclass the suites for a new store."""

    dose = 1.0
    """How much there is of what only counts by the hundred; less for a server that is slow."""

    def some(self, number: int) -> int:
        return max(1, round(number * self.dose))

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def store(self, clock: FakeClock) -> Store:
        raise NotImplementedError("give a `store` fixture: an open store whose clock is `clock`")

    @pytest.fixture
    def open_another(self, store: Store) -> OpenAnother:
        if "many_processes" in store.abilities:
            raise NotImplementedError("give `open_another`: it opens the same data once more")
        pytest.skip("this store lives in one handle (no ability `many_processes`)")

    @pytest.fixture
    def process_url(self, store: Store) -> str:
        if "many_processes" in store.abilities:
            raise NotImplementedError("give `process_url`: where processes find a fresh store")
        pytest.skip("this store lives in one process (no ability `many_processes`)")

    @pytest.fixture
    async def worker(self, store: Store) -> WorkerId:
        """A registered worker that serves every queue."""
        return await enlist(store)

    @pytest.fixture(autouse=True)
    async def _the_store_finds_nothing_broken(self, store: Store) -> AsyncIterator[None]:
        yield
        assert list(await store.check()) == []


async def enlist(store: Store, name: str = "worker") -> WorkerId:
    """Register a worker."""
    info = worker_info(id=worker_id(name))
    await store.register(info)
    return info.id


async def leave(store: Store, worker_id: WorkerId) -> bool:
    """Let a worker stop in good order."""
    return await store.beat(worker_id, status=WorkerStatus.STOPPED)


async def add(store: Store, *tasks: NewTask) -> list[Added]:
    return list(await store.add(tasks, idempotency_window=WINDOW))


async def submit(store: Store, **given: Any) -> TaskId:
    """Submit one task that must be new."""
    (answer,) = await add(store, new_task(**given))
    assert answer.created
    return answer.task_id


async def claim(
    store: Store,
    worker: WorkerId,
    *,
    limit: int = MANY,
    queues: Collection[str] | None = None,
    capabilities: Collection[str] = (),
) -> list[Claim]:
    claimed = await store.claim(
        worker, queues=queues, capabilities=frozenset(capabilities), limit=limit
    )
    return list(claimed.claims)


async def claim_ids(store: Store, worker: WorkerId, **given: Any) -> list[TaskId]:
    return [found.task_id for found in await claim(store, worker, **given)]


async def claim_one(store: Store, worker: WorkerId, **given: Any) -> Claim:
    """Claim the only task there is to claim."""
    (found,) = await claim(store, worker, **given)
    return found


async def save(store: Store, *settlements: Settlement) -> None:
    """Settle attempts; none may be refused."""
    assert list(await store.save(settlements)) == []


async def started(store: Store, worker: WorkerId, **given: Any) -> Claim:
    """Submit a task and start it. Nothing else may be ready."""
    task_id = await submit(store, **given)
    found = await claim_one(store, worker)
    assert found.task_id == task_id
    return found


async def ended(store: Store, worker: WorkerId, settle: Settle, **given: Any) -> TaskId:
    """Submit a task, start it, and settle its attempt."""
    found = await started(store, worker, **given)
    await save(store, settle(found))
    return found.task_id


async def get(store: Store, task_id: TaskId) -> Task:
    found = await store.get(task_id)
    assert found is not None
    return found


async def state(store: Store, task_id: TaskId) -> State:
    return (await get(store, task_id)).state


async def history(store: Store, task_id: TaskId) -> History:
    found = await store.history(task_id)
    assert found is not None
    return found


async def attempts(store: Store, task_id: TaskId) -> tuple[Attempt, ...]:
    return (await history(store, task_id)).attempts


async def events(store: Store, task_id: TaskId) -> tuple[Event, ...]:
    return (await history(store, task_id)).events


async def kinds(store: Store, task_id: TaskId) -> list[str]:
    """The kinds of all events of a task, oldest first."""
    return [event.kind for event in await events(store, task_id)]


async def all_ids(store: Store, where: TaskFilter = EVERYTHING) -> list[TaskId]:
    """The ids of all matching tasks, newest first."""
    return [task.id for task in (await store.list(where, limit=MANY)).tasks]


def only(*ids: TaskId) -> TaskFilter:
    return TaskFilter(ids=ids)
