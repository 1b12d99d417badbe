"""Servers without HTTP for tests: one store, one dispatcher, any number of `RemoteWorkers`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.core.attempt import Claim, History
from holdfast.core.task import State, Task, TaskError, TaskId, WorkerId
from holdfast.definitions.registry import Registry
from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.ports.store import Store
from holdfast.remote import RemoteResult, RemoteWorkers, ResultStatus, TakenResult, Verdict
from holdfast.settings import Settings
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_task

ASLEEP = Settings(poll=30.0, lease=30.0, heartbeat=10.0, retry_base=0.0, retry_cap=0.0)
"""Nothing is found by polling: what comes soon was woken."""
SOON = 5.0


class Depot:
    """Where tasks are submitted, and workers over HTTP come to fetch them."""

    def __init__(self, store: Store) -> None:
        self.registry = Registry()
        self.store = store
        self.dispatcher = InProcessDispatcher()
        self._servers: list[RemoteWorkers] = []
        self.remote = self.server()

    def server(
        self, *, store: Store | None = None, grace: float = 0.05, **given: Any
    ) -> RemoteWorkers:
        """Another server process, as far as its memory goes."""
        used = store or self.store
        settings = replace(ASLEEP, **given)
        made = RemoteWorkers(used, self.dispatcher, self.registry, settings, grace=grace)
        self._servers.append(made)
        return made

    async def close(self) -> None:
        for server in self._servers:
            await server.close()

    async def worker(self, **given: Any) -> WorkerId:
        """Register a worker with ten slots."""
        registration = await self.remote.register(**{"capacity": 10, **given})
        return registration.worker_id

    async def submit(self, **given: Any) -> TaskId:
        (added,) = await self.store.add([new_task(**given)], idempotency_window=WINDOW)
        self.dispatcher.wake({given.get("queue", "default"): 1})
        return added.task_id

    async def started(self, worker: WorkerId, **given: Any) -> Claim:
        """Submit a task and let this worker fetch it."""
        task_id = await self.submit(**given)
        (claim,) = await self.remote.poll(worker, limit=10, wait=0.0)
        assert claim.task_id == task_id
        return claim

    async def parked(self, worker: WorkerId, *, limit: int = 1) -> asyncio.Task[Sequence[Claim]]:
        """A poll that found nothing and waits."""
        polling = asyncio.create_task(self.remote.poll(worker, limit=limit, wait=30.0))
        await eventually(lambda: _waits(self.remote, worker), within=SOON)
        return polling

    async def tell(self, worker: WorkerId, claim: Claim, **given: Any) -> TakenResult:
        """Hand in one result: `completed` with null unless told otherwise."""
        (answer,) = await self.remote.results(worker, [result(claim, **given)])
        return answer

    async def get(self, task_id: TaskId) -> Task:
        found = await self.store.get(task_id)
        assert found is not None
        return found

    async def history(self, task_id: TaskId) -> History:
        found = await self.store.history(task_id)
        assert found is not None
        return found

    async def state(self, task_id: TaskId) -> State:
        return (await self.get(task_id)).state

    async def kinds(self, task_id: TaskId) -> list[str]:
        return [event.kind for event in (await self.history(task_id)).events]


def result(claim: Claim, **given: Any) -> RemoteResult:
    plain: dict[str, Any] = {"task_id": claim.task_id, "attempt": claim.attempt}
    return RemoteResult(**plain | {"status": ResultStatus.COMPLETED} | given)


def failure(claim: Claim, *, retriable: bool = True, **given: Any) -> RemoteResult:
    error = TaskError(type="ValueError", message="no such row", retriable=retriable)
    return result(claim, status=ResultStatus.FAILED, error=error, **given)


def released(claim: Claim) -> RemoteResult:
    return result(claim, status=ResultStatus.RELEASED)


def verdicts(answers: Sequence[TakenResult]) -> list[Verdict]:
    return [answer.verdict for answer in answers]


def _waits(remote: RemoteWorkers, worker: WorkerId) -> bool:
    """Whether a poll of this worker waits, and nothing is claimed for it just now."""
    waiting = [one for one in remote._polls._waiting.values() if one._polls]
    there = {poll.worker.id for one in waiting for poll in one._polls}
    return worker in there and all(one._napper.is_asleep for one in waiting)
