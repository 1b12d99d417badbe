"""What workers over HTTP hold, as far as this process knows: it handed it out, or found it running.

A memory, not the truth: the worker may have settled an attempt through another server, or lost it.
So nothing is written on its word alone but what the fence guards anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.core.attempt import Claim, Refusal
from holdfast.core.flow import IN_PAYLOAD
from holdfast.core.lifecycle import Outcome, Released
from holdfast.core.query import TaskFilter, running_on
from holdfast.core.shown import MARK
from holdfast.core.task import State, Task, TaskId, WorkerId
from holdfast.counting import tally_of
from holdfast.engine.settling import Settling
from holdfast.errors import StoreUnavailable
from holdfast.logs import EventLog
from holdfast.ports.store import Store

log = EventLog("holdfast.remote")

PAGE = 200


@dataclass(slots=True)
class LeasedAttempt:
    """A claim in the hands of a worker; with its payload only if that has secrets, which must be
    known to keep them out of the worker's errors, says something of other tasks, or which breaker
    it stands behind. Times by the monotonic clock.

    `missed` counts the heartbeats in a row that should have named the task and did not.
    """

    claim: Claim
    since: float
    deadline: float | None
    missed: int = 0


class Leases:
    """Every attempt that this process knows a worker over HTTP to hold."""

    def __init__(
        self,
        store: Store,
        settling: Settling,
        timeout_of: Callable[[Claim], float | None],
        *,
        grace: float,
        needs_payload: Callable[[Claim], bool] = lambda _claim: False,
    ) -> None:
        """`grace` is added to timeouts: a worker may say itself how its attempt ended."""
        self._needs_payload = needs_payload
        self._store = store
        self._settling = settling
        self._tally = tally_of(store)
        self._timeout_of = timeout_of
        self._grace = grace
        self._by_worker: dict[WorkerId, dict[TaskId, LeasedAttempt]] = {}

    def add(self, claim: Claim, *, age: float = 0.0) -> None:
        """Remember a claim that started `age` seconds ago."""
        since = time.monotonic() - age
        timeout = self._timeout_of(claim)
        deadline = None if timeout is None else since + timeout + self._grace
        is_marked = MARK.encode() in claim.payload or IN_PAYLOAD in claim.payload
        if not is_marked and not self._needs_payload(claim):
            claim = claim._replace(payload=b"")
        kept = LeasedAttempt(claim, since, deadline)
        self._by_worker.setdefault(claim.worker_id, {})[claim.task_id] = kept

    def find(self, worker_id: WorkerId, task_id: TaskId, attempt: int) -> Claim | None:
        lease = self._by_worker.get(worker_id, {}).get(task_id)
        if lease is None or lease.claim.attempt != attempt:
            return None
        return lease.claim

    def count(self, worker_id: WorkerId) -> int:
        return len(self._by_worker.get(worker_id, ()))

    def mark_cancelled(self, worker_id: WorkerId, task_ids: Collection[TaskId]) -> None:
        """Somebody wants these stopped: handed back, they are cancelled."""
        tasks = self._by_worker.get(worker_id, {})
        for task_id in tasks.keys() & set(task_ids):
            tasks[task_id].claim = tasks[task_id].claim._replace(cancel_requested=True)

    def overdue(self) -> list[Claim]:
        """Those whose time is up."""
        now = time.monotonic()
        return [
            one.claim for one in self._all() if one.deadline is not None and one.deadline <= now
        ]

    def keep_workers(self, alive: Collection[WorkerId]) -> None:
        """Forget what all others had."""
        for worker_id in self._by_worker.keys() - set(alive):
            del self._by_worker[worker_id]

    async def settle(self, ended: Sequence[tuple[Claim, Outcome]]) -> Mapping[TaskId, Refusal]:
        """These have ended thus. Returns those that were refused; with a conflict, they go on."""
        refused = await self._settling.settle(ended)
        self._note_durations([one for one in ended if one[0].task_id not in refused])
        go_on = {task_id for task_id, refusal in refused.items() if refusal.conflict is not None}
        self._drop([claim for claim, _ in ended if claim.task_id not in go_on])
        return refused

    async def give_back(self, claims: Sequence[Claim]) -> None:
        """Hand back what nobody received, uncharged. If the store is away they stay with their
        worker, whose heartbeat will not name them.
        """
        try:
            await self.settle([(claim, Released()) for claim in claims])
        except StoreUnavailable as error:
            log.warning("tasks.not_given_back", tasks=len(claims), error=str(error))

    async def reconcile(
        self, worker_id: WorkerId, named: frozenset[TaskId], *, beat: float
    ) -> Collection[TaskId]:
        """Compare what the worker has with what it was given: what it does not name, beat after
        beat, goes back. Returns what it must stop.
        """
        known = dict(self._by_worker.get(worker_id, {}))
        strays: list[Claim] = []
        for task_id, lease in known.items():
            lease.missed = 0 if task_id in named else lease.missed + 1
            if lease.missed > 1 and time.monotonic() - lease.since > 2 * beat:
                strays.append(lease.claim)
        for claim in (running := await self.still_running(strays)):
            log.warning("task.stray", task_id=claim.task_id, attempt=claim.attempt)
        await self.give_back(running)
        new = sorted(named - known.keys())
        its = {task.id: task for task in await self._running(new) if task.worker_id == worker_id}
        await self._adopt(list(its.values()))
        return set(new) - its.keys()

    async def still_running(self, claims: Sequence[Claim]) -> list[Claim]:
        """Those that run in truth: a result may have come in elsewhere. Forgets the others."""
        tasks = await self._running({claim.task_id for claim in claims})
        running = {(task.id, task.attempt, task.worker_id) for task in tasks}
        self._drop([claim for claim in claims if claim[:3] not in running])
        return [claim for claim in claims if claim[:3] in running]

    async def look_at(self, worker_id: WorkerId) -> None:
        """Learn what the worker runs."""
        known = dict(self._by_worker.get(worker_id, {}))
        found: dict[TaskId, Task] = {}
        after: str | None = None
        while True:
            page = await self._store.list(running_on(worker_id), limit=PAGE, after=after)
            found |= {task.id: task for task in page.tasks}
            after = page.next
            if after is None:
                break
        new = [one for one in found.values() if not self.find(worker_id, one.id, one.attempt)]
        await self._adopt(new)
        self._drop([one.claim for task_id, one in known.items() if task_id not in found])

    async def read(self, ids: Collection[TaskId]) -> Sequence[Task]:
        """Those of the tasks that there are."""
        if not ids:
            return []
        return (await self._store.list(TaskFilter(ids=tuple(ids)), limit=len(ids))).tasks

    async def _running(self, ids: Collection[TaskId]) -> list[Task]:
        return [task for task in await self.read(ids) if task.state is State.RUNNING]

    async def _adopt(self, tasks: Sequence[Task]) -> None:
        """Remember tasks that run and that this process knew nothing of."""
        if tasks:
            now = await self._store.now()
            for task in tasks:
                age = (now - task.started_at).total_seconds() if task.started_at else 0.0
                self.add(Claim.of(task), age=max(0.0, age))

    def _note_durations(self, ended: Sequence[tuple[Claim, Outcome]]) -> None:
        now = time.monotonic()
        for claim, outcome in ended:
            lease = self._by_worker.get(claim.worker_id, {}).get(claim.task_id)
            if lease is not None and lease.claim.attempt == claim.attempt:
                self._tally.ended.append((claim.priority, type(outcome), now - lease.since))

    def _drop(self, claims: Collection[Claim]) -> None:
        """Forget these attempts: they have ended."""
        for claim in claims:
            if self.find(claim.worker_id, claim.task_id, claim.attempt) is not None:
                tasks = self._by_worker[claim.worker_id]
                del tasks[claim.task_id]
                if not tasks:
                    del self._by_worker[claim.worker_id]

    def _all(self) -> Iterator[LeasedAttempt]:
        for tasks in self._by_worker.values():
            yield from tasks.values()
