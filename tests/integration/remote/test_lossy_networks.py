"""Three servers, six workers, and a network that loses answers: every task is completed once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

from tests.integration.remote.depot import Depot, failure, released, result

from holdfast.core.attempt import Claim
from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId, WorkerId
from holdfast.remote import RemoteResult, RemoteWorkers, ResultStatus
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_tasks

TASKS = 150
BEAT = 0.05


class Unreliable:
    """A worker over a bad line, which speaks to whichever server answers."""

    def __init__(self, servers: list[RemoteWorkers], worker: WorkerId, seed: int) -> None:
        self._servers = servers
        self._worker = worker
        self._luck = random.Random(seed)
        self._jobs: dict[TaskId, Claim] = {}
        self.completed: set[tuple[TaskId, int]] = set()

    async def work(self) -> None:
        while True:
            for claim in await self._poll():
                self._jobs[claim.task_id] = claim
            for claim in list(self._jobs.values()):
                await self._finish(claim)
                self._jobs.pop(claim.task_id, None)

    async def beat(self) -> None:
        while True:
            await self._server().heartbeat(self._worker, running=list(self._jobs))
            await asyncio.sleep(BEAT)

    async def _poll(self) -> Sequence[Claim]:
        polling = asyncio.create_task(self._server().poll(self._worker, limit=3, wait=0.2))
        if self._luck.random() < 0.2:
            await asyncio.sleep(self._luck.random() * 0.01)
            polling.cancel()
            await asyncio.wait({polling})
            # If it was done already, its answer is lost on the way.
            return []
        claims = await polling
        return [] if self._luck.random() < 0.1 else claims

    async def _finish(self, claim: Claim) -> None:
        await asyncio.sleep(self._luck.random() * 0.01)
        said = self._luck.choices(
            [result(claim, result=claim.attempt), failure(claim), released(claim)], [8, 1, 1]
        )[0]
        await self._tell(said)
        if self._luck.random() < 0.3:
            await self._tell(said)

    async def _tell(self, said: RemoteResult) -> None:
        (answer,) = await self._server().results(self._worker, [said])
        if answer.is_accepted and said.status is ResultStatus.COMPLETED:
            self.completed.add((said.task_id, said.attempt))

    def _server(self) -> RemoteWorkers:
        return self._luck.choice(self._servers)


async def test_every_task_is_completed_once_whatever_the_network_does(depot: Depot) -> None:
    servers = [depot.server(poll=0.1, heartbeat=BEAT) for _ in range(3)]
    crew = [Unreliable(servers, await depot.worker(), seed) for seed in range(6)]
    tasks = new_tasks(TASKS, max_retries=1000)
    await depot.store.add(tasks, idempotency_window=WINDOW)

    loops = [asyncio.create_task(loop) for each in crew for loop in (each.work(), each.beat())]
    loops += [asyncio.create_task(_oversee(server)) for server in servers]
    which = TaskFilter(states=frozenset({State.COMPLETED}))

    async def all_done() -> bool:
        for loop in loops:
            assert not loop.done(), loop.exception()
        return await depot.store.count(which, limit=TASKS) == TASKS

    await eventually(all_done, within=40.0, every=0.1)
    for loop in loops:
        loop.cancel()
    await asyncio.wait(loops)
    accepted = Counter(task_id for each in crew for task_id, _ in each.completed)
    assert accepted == Counter(task.id for task in tasks)
    assert list(await depot.store.check()) == []


async def _oversee(server: RemoteWorkers) -> None:
    while True:
        await server.timeouts.look()
        await server.timeouts.tick()
        await asyncio.sleep(0.1)
