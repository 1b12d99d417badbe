"""What this process has handed out, or found to be running, by worker.

A memory, not the truth: the worker may have settled an attempt through another server, or lost it.
So nothing is written on its word alone but what the fence guards anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from holdfast.core.attempt import Claim
from holdfast.core.shown import MARK
from holdfast.core.task import TaskId, WorkerId

TimeoutOf = Callable[[Claim], float | None]


@dataclass(slots=True)
class Handout:
    """A claim in the hands of a worker; with its payload only if that has secrets, which must be
    known to keep them out of the worker's errors. Times by the monotonic clock.

    `missed` counts the heartbeats in a row that should have named the task and did not.
    """

    claim: Claim
    since: float
    deadline: float | None
    missed: int = 0


class Handouts:
    """Every hand-out this process knows of."""

    def __init__(
        self,
        timeout_of: TimeoutOf,
        *,
        grace: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout_of = timeout_of
        self._grace = grace
        self._clock = clock
        self._by_worker: dict[WorkerId, dict[TaskId, Handout]] = {}

    def add(self, claim: Claim, *, age: float = 0.0) -> None:
        """Remember a claim that started `age` seconds ago."""
        since = self._clock() - age
        timeout = self._timeout_of(claim)
        deadline = None if timeout is None else since + timeout + self._grace
        if MARK.encode() not in claim.payload:
            claim = claim._replace(payload=b"")
        kept = Handout(claim, since, deadline)
        self._by_worker.setdefault(claim.worker_id, {})[claim.task_id] = kept

    def find(self, worker_id: WorkerId, task_id: TaskId, attempt: int) -> Claim | None:
        handout = self._by_worker.get(worker_id, {}).get(task_id)
        if handout is None or handout.claim.attempt != attempt:
            return None
        return handout.claim

    def of(self, worker_id: WorkerId) -> dict[TaskId, Handout]:
        """The worker's hand-outs by task; a copy."""
        return dict(self._by_worker.get(worker_id, {}))

    def count(self, worker_id: WorkerId) -> int:
        return len(self._by_worker.get(worker_id, ()))

    def age(self, handout: Handout) -> float:
        """Seconds since it was started."""
        return self._clock() - handout.since

    def mark_cancelled(self, worker_id: WorkerId, task_ids: Collection[TaskId]) -> None:
        """Somebody wants these stopped: handed back, they are cancelled."""
        tasks = self._by_worker.get(worker_id, {})
        for task_id in tasks.keys() & set(task_ids):
            tasks[task_id].claim = tasks[task_id].claim._replace(cancel_requested=True)

    def overdue(self) -> list[Handout]:
        """Those whose time is up."""
        now = self._clock()
        return [one for one in self._all() if one.deadline is not None and one.deadline <= now]

    def drop(self, claims: Collection[Claim]) -> None:
        """Forget these attempts: they have ended."""
        for claim in claims:
            tasks = self._by_worker.get(claim.worker_id, {})
            handout = tasks.get(claim.task_id)
            if handout is not None and handout.claim.attempt == claim.attempt:
                del tasks[claim.task_id]
                if not tasks:
                    del self._by_worker[claim.worker_id]

    def keep_workers(self, alive: Collection[WorkerId]) -> None:
        """Forget what all others had."""
        for worker_id in self._by_worker.keys() - set(alive):
            del self._by_worker[worker_id]

    def _all(self) -> Iterator[Handout]:
        for tasks in self._by_worker.values():
            yield from tasks.values()
