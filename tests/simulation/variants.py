"""Stores, rescuers and workers that are broken on purpose, each in one way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from tests.kit.simulation.actors import LEASE, SETTINGS, Rescuer, Worker, lose
from tests.kit.simulation.world import World

from holdfast.core.attempt import CLASHES, Claim, Claimed, History, Refusal, Report, Settlement
from holdfast.core.fleet import WorkerStatus
from holdfast.core.lifecycle import WorkerLost, settle
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Kept, Name, decided
from holdfast.core.task import (
    Added,
    NewTask,
    Reason,
    State,
    SubmitOutcome,
    Task,
    TaskError,
    TaskId,
    WorkerId,
)
from holdfast.errors import IdempotencyConflict, StoreUnavailable
from holdfast.ports.clock import Clock
from holdfast.ports.store import Store
from holdfast.stores.keys import Plan
from holdfast.stores.memory import MemoryStore


class NoFence(MemoryStore):
    """Takes a result from anyone, as most queues do: the attempt and worker are not compared."""

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        return await super().save([await self._forged(s) for s in settlements])

    async def _forged(self, settlement: Settlement) -> Settlement:
        task = await self.get(settlement.task_id)
        if task is None or task.state is not State.RUNNING or task.worker_id is None:
            return settlement
        return settlement._replace(attempt=task.attempt, worker_id=task.worker_id)


class NoFenceOnReports(MemoryStore):
    """Takes progress from a zombie."""

    async def report(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        await super().report(reports)
        return ()


class NoUniqueIndex(MemoryStore):
    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        bare = [new._replace(unique_key=None) for new in tasks]
        return await super().add(bare, idempotency_window=idempotency_window)


class NoIdempotencyIndex(MemoryStore):
    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        bare = [new._replace(idempotency_key=None) for new in tasks]
        return await super().add(bare, idempotency_window=idempotency_window)


class IdempotencyWithoutFingerprint(MemoryStore):
    """Answers another body with the first task."""

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        try:
            return await super().add(tasks, idempotency_window=idempotency_window)
        except IdempotencyConflict as conflict:
            first = TaskId(conflict.task_id)
            return [Added(first, SubmitOutcome.IDEMPOTENCY_KEY, State.QUEUED) for _ in tasks]


class NoLockExclusivity(MemoryStore):
    """Every task gets a lock of its own."""

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        own = [new._replace(lock=new.lock and f"{new.lock}:{new.id}") for new in tasks]
        return await super().add(own, idempotency_window=idempotency_window)


class LocksLostOnRetry(MemoryStore):
    """A task that is handed back forgets its lock."""

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        refusals = await super().save(settlements)
        for settlement in settlements:
            task = self._tasks.get(settlement.task_id)
            if task and task.lock and task.state is State.RETRYING:
                self._tasks[task.id] = replace(task, lock=None)
        return refusals


class FencesStartOver(MemoryStore):
    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        self._fence = 0
        return await super().save(settlements)


class ForgetfulAdd(MemoryStore):
    """Acknowledges before it stores, and every third time it does not come to it."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(clock=clock)
        self._adds = 0

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        self._adds += 1
        if self._adds % 3:
            return await super().add(tasks, idempotency_window=idempotency_window)
        return [Added(new.id, SubmitOutcome.CREATED, State.QUEUED) for new in tasks]


class SettlesTwice(MemoryStore):
    """Applies a repeated settlement again."""

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        for settlement in settlements:
            task = self._tasks.get(settlement.task_id)
            if task and task.unique_key is None and self._was_saved(settlement):
                self._settle(task, settlement, self._clock.now_us())
        return await super().save(settlements)


class SilentRefusals(MemoryStore):
    """Refuses late results and tells nobody."""

    async def history(self, task_id: TaskId) -> History | None:
        told = await super().history(task_id)
        if told is None:
            return None
        events = tuple(e for e in told.events if e.kind != "late_result_refused")
        return replace(told, events=events)


class ForgetsReleasedAttempts(MemoryStore):
    async def history(self, task_id: TaskId) -> History | None:
        told = await super().history(task_id)
        if told is None:
            return None
        return replace(told, attempts=tuple(a for a in told.attempts if a.ended != "released"))


class NoAging(MemoryStore):
    """Every priority is worth the same."""

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        flat = [new._replace(head_start=0) for new in tasks]
        return await super().add(flat, idempotency_window=idempotency_window)


class QueueByQueue(MemoryStore):
    """Serves one queue first, whatever waits in the other."""

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        if queues is None:
            first = await super().claim(
                worker_id, queues=("video",), capabilities=capabilities, limit=limit
            )
            if first.claims:
                return first
        return await super().claim(worker_id, queues=queues, capabilities=capabilities, limit=limit)


class ClaimsFromPausedQueues(MemoryStore):
    """Remembers every pause and heeds none."""

    @property
    def _paused(self) -> set[str]:
        return set()


class IgnoresCapabilities(MemoryStore):
    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        return await super().claim(
            worker_id, queues=queues, capabilities=frozenset({"gpu"}), limit=limit
        )


class NeverExpires(MemoryStore):
    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        lasting = [new._replace(expires_in=None) for new in tasks]
        return await super().add(lasting, idempotency_window=idempotency_window)


class StartsTooEarly(MemoryStore):
    """Takes what becomes due within the next ten seconds."""

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        self._places.promote(self._clock.now_us() + 10_000_000)
        return await super().claim(worker_id, queues=queues, capabilities=capabilities, limit=limit)


class CancelLeavesItInLine(MemoryStore):
    """Writes `cancelled`, but the task is still handed out."""

    async def cancel(
        self, where: TaskFilter, *, limit: int, reason: Reason = Reason.CANCELLED
    ) -> Sequence[Task]:
        tasks = await super().cancel(where, limit=limit, reason=reason)
        for task in tasks:
            if task.state is State.CANCELLED and task.lock is None:
                self._places.ready.add(task.rank, task.id)
        return tasks


class RetryWinsOverCancel(MemoryStore):
    """Starts a failing task again although somebody asked to cancel it."""

    def _settle(self, task: Task, settlement: Settlement, now: int) -> Sequence[Refusal]:
        return super()._settle(replace(task, cancel_requested=False), settlement, now)


class BuriesWithoutLooking(MemoryStore):
    """Declares a worker dead although it has beaten since the rescuer looked."""

    async def bury(self, worker_id: WorkerId, *, beats: int | None) -> bool:
        return await super().bury(worker_id, beats=None)


class OrphansOfTheLiving(MemoryStore):
    async def orphans(self, *, limit: int) -> Sequence[Claim]:
        running = [self._tasks[task_id] for task_id in sorted(self._places.running)]
        return [Claim.of(task) for task in running]


class BuriedMayClaim(MemoryStore):
    def _is_alive(self, worker_id: WorkerId) -> bool:
        return worker_id in self._workers


class EndlessRetries(MemoryStore):
    """Hands out claims that never run out of retries."""

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        found = await super().claim(
            worker_id, queues=queues, capabilities=capabilities, limit=limit
        )
        return found._replace(claims=[one._replace(max_retries=99) for one in found.claims])


class PromisesWorkTooLate(MemoryStore):
    """Tells an idle worker to sleep past the next due task."""

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        found = await super().claim(
            worker_id, queues=queues, capabilities=capabilities, limit=limit
        )
        return found._replace(next_due=found.next_due and found.next_due + 60.0)


class IgnoresVersions(MemoryStore):
    """Lets whoever comes last win."""

    def _write_changes(self, changes: Changes, now: int) -> Plan:
        blind = [change._replace(version=None) for change in changes.records]
        return super()._write_changes(changes._replace(records=blind), now)


class WritesHalfACommit(MemoryStore):
    """Adds the tasks of a commit before it looks at the versions of its records."""

    def _write_changes(self, changes: Changes, now: int) -> Plan:
        plan = super()._write_changes(changes._replace(records=()), now)
        fresh = decided(changes, self._kept(changes), ())
        self._write_records(fresh.records, changes.id, now)
        return plan


class ForgetsItsCommits(MemoryStore):
    """Does not know a repeat of a commit that was written."""

    def _kept(self, changes: Changes) -> dict[Name, Kept]:
        return {name: kept._replace(written_by="") for name, kept in super()._kept(changes).items()}


class FollowUpsOfTheLate(MemoryStore):
    """Writes what a settlement brings along even if it comes too late."""

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        refusals = await super().save(settlements)
        late = {(refusal.task_id, refusal.attempt) for refusal in refusals if not refusal.conflict}
        for one in settlements:
            if one.also is not None and (one.task_id, one.attempt) in late:
                with suppress(*CLASHES):
                    await self.commit(one.also)
        return refusals


class PlainRescuer(Rescuer):
    """The rescuer in its shortest form, to break in one place at a time."""

    def __init__(self, world: World, store: Store) -> None:
        super().__init__(world, store)
        self.watched: dict[WorkerId, tuple[int, float]] = {}

    async def tick(self) -> float:
        asked = self.world.clock.mono
        workers = await self.store.workers()
        since = self.begin_of_silence(asked)
        before, self.watched = self.watched, {}
        for worker in workers:
            if worker.status is not WorkerStatus.ACTIVE:
                continue
            seen = before.get(worker.id, (-1, since))
            self.watched[worker.id] = seen if seen[0] == worker.beats else (worker.beats, since)
            if seen[0] == worker.beats and asked - seen[1] >= LEASE:
                await self.store.bury(worker.id, beats=worker.beats)
        await self.rescue()
        return SETTINGS.sweep

    def begin_of_silence(self, asked: float) -> float:
        """A worker may have beaten until the answer was given, so it counts from now."""
        return self.world.clock.mono

    async def rescue(self) -> None:
        orphans = await self.store.orphans(limit=100)
        if orphans:
            await self.store.save([lose(claim) for claim in orphans])


class RescuesByTime(PlainRescuer):
    """Takes every task away that has run for a lease, as queues with a visibility timeout do."""

    async def rescue(self) -> None:
        running = await self.store.list(TaskFilter(states=frozenset({State.RUNNING})), limit=100)
        now = self.world.clock.now_us()
        old = [
            task
            for task in running.tasks
            if task.started_at and now / 1e6 - task.started_at.timestamp() > LEASE
        ]
        if old:
            await self.store.save([lose(Claim.of(task)) for task in old])


class MeasuresSilenceTooEarly(PlainRescuer):
    """Counts the silence from when it asked, not from when it was answered."""

    def begin_of_silence(self, asked: float) -> float:
        return asked


class ForgivesEveryCrash(PlainRescuer):
    """Starts a poison pill again and again."""

    async def rescue(self) -> None:
        orphans = await self.store.orphans(limit=100)
        lost = WorkerLost(TaskError(type="WorkerLost", message="again"))
        if orphans:
            await self.store.save(
                [settle(c, lost, backoff=lambda n: 0.0, crash_limit=10**6) for c in orphans]
            )


class NeverRescues(PlainRescuer):
    async def rescue(self) -> None:
        """Buries, and leaves it at that."""


class ForgetsUnknownClaims(Worker):
    """Does not ask what a claim of unknown outcome has started."""

    async def _reconcile(self, worker_id: WorkerId) -> None:
        pass


class SavesOnlyOnce(Worker):
    """Drops a result when the store is away."""

    async def _flush(self) -> None:
        batch, self._outbox = self._outbox, []
        with suppress(StoreUnavailable):
            await self.store.save(batch)
