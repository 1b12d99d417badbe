"""A store as one actor meets it: slow, sometimes away, and watched by the ledger.

Every call gives up control before and after, so that anything may happen between a request, its
effect and its answer. Faults come in two kinds: before the call (nothing happened) and after it (it
happened, but the caller is told otherwise). The ledger sees what really happened either way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.kit.simulation.ledger import Ledger
from tests.kit.simulation.world import Until, World

from holdfast import pauses
from holdfast.core.attempt import CLASHES, Claim, Claimed, History, Refusal, Report, Settlement
from holdfast.core.fleet import Requests, WorkerInfo, WorkerStatus
from holdfast.core.gate import GateState
from holdfast.core.query import Order, Page, TaskFilter
from holdfast.core.record import Changes, Due, Name, Record
from holdfast.core.stats import Standing, Stats
from holdfast.core.task import Added, NewTask, Priority, Reason, Task, TaskId, WorkerId
from holdfast.errors import IdempotencyConflict, StoreUnavailable, WorkerGone
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.stores.callees import tell_nobody
from holdfast.stores.refusing import NoTransactions

T = TypeVar("T")


class Drive:
    """Runs a store's coroutine to its end, at one instant of the simulation."""

    def __call__(self, call: Coroutine[Any, Any, T]) -> T:
        """For a store that never waits, such as the memory store."""
        try:
            call.send(None)
        except StopIteration as done:
            value: T = done.value
            return value
        raise AssertionError("this store waits for something: simulate it with a driver of its own")


class Faults:
    """How often a call fails, and whether it had an effect. Can be healed."""

    def __init__(self, before: float, after: float) -> None:
        self.before = before
        self.after = after

    def heal(self) -> None:
        self.before = self.after = 0.0


class ObservedStore(NoTransactions):
    """All of `ports.store.Store`, for one actor."""

    def __init__(
        self,
        store: Store,
        *,
        world: World,
        ledger: Ledger,
        faults: Faults,
        drive: Drive,
        is_rescuer: bool = False,
    ) -> None:
        self._store = store
        self._world = world
        self._ledger = ledger
        self._faults = faults
        self._drive = drive
        self._is_rescuer = is_rescuer
        # Nobody is told here: the store itself tells the ledger.
        self.passed_on: Callable[[Mapping[str, int]], None] = tell_nobody

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def abilities(self) -> frozenset[str]:
        return self._store.abilities

    async def _call(
        self, make: Callable[[], Coroutine[Any, Any, T]], note: Callable[[T], None] | None = None
    ) -> T:
        await Until(0.0)
        rng, faults = self._world.rng, self._faults
        if faults.before and rng.random() < faults.before:
            raise StoreUnavailable("simulated: the store was away, nothing happened")
        answer = self._drive(make())
        if note is not None:
            note(answer)
        if faults.after and rng.random() < faults.after:
            raise StoreUnavailable("simulated: the connection was lost after the commit")
        if not self._world.is_healing:
            await Until(0.0)
        return answer

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        try:
            return await self._call(
                lambda: self._store.add(tasks, idempotency_window=idempotency_window),
                lambda answers: self._ledger.added(tasks, idempotency_window, answers),
            )
        except IdempotencyConflict:
            self._ledger.added(tasks, idempotency_window, None)
            raise

    async def get(self, task_id: TaskId) -> Task | None:
        return await self._call(lambda: self._store.get(task_id))

    async def list(
        self,
        where: TaskFilter,
        *,
        limit: int,
        after: str | None = None,
        order: Order = Order.NEWEST,
    ) -> Page:
        return await self._call(
            lambda: self._store.list(where, limit=limit, after=after, order=order)
        )

    async def count(self, where: TaskFilter, *, limit: int) -> int:
        return await self._call(lambda: self._store.count(where, limit=limit))

    async def history(self, task_id: TaskId) -> History | None:
        return await self._call(lambda: self._store.history(task_id))

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        try:
            return await self._call(
                lambda: self._store.claim(
                    worker_id, queues=queues, capabilities=capabilities, limit=limit
                ),
                lambda got: self._ledger.claimed(worker_id, queues, capabilities, limit, got),
            )
        except WorkerGone:
            self._ledger.refused_claim(worker_id)
            raise

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        return await self._call(
            lambda: self._store.save(settlements),
            lambda refused: self._ledger.saved(
                settlements,
                refused,
                self._named(*(s.also for s in settlements if s.also is not None)),
                rescuer=self._is_rescuer,
            ),
        )

    async def report(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        return await self._call(
            lambda: self._store.report(reports), lambda got: self._ledger.reported(reports, got)
        )

    async def cancel(
        self, where: TaskFilter, *, limit: int, reason: Reason = Reason.CANCELLED
    ) -> Sequence[Task]:
        return await self._call(
            lambda: self._store.cancel(where, limit=limit, reason=reason),
            lambda tasks: self._ledger.cancelled(where, limit, tasks),
        )

    async def requeue(
        self,
        where: TaskFilter,
        *,
        limit: int,
        head_starts: Mapping[str, int],
        pace: float | None = None,
    ) -> Sequence[Task]:
        return await self._call(
            lambda: self._store.requeue(where, limit=limit, head_starts=head_starts, pace=pace),
            lambda tasks: self._ledger.requeued(where, limit, head_starts, pace, tasks),
        )

    async def discard(self, where: TaskFilter, *, limit: int) -> int:
        return await self._call(
            lambda: self._store.discard(where, limit=limit),
            lambda number: self._ledger.discarded(where, limit, number),
        )

    async def prune(self, *, retention: float, dead_letter_retention: float, limit: int) -> int:
        return await self._call(
            lambda: self._store.prune(
                retention=retention, dead_letter_retention=dead_letter_retention, limit=limit
            ),
            lambda number: self._ledger.pruned(retention, dead_letter_retention, limit, number),
        )

    async def standing(self, task_id: TaskId) -> Standing | None:
        return await self._call(lambda: self._store.standing(task_id))

    async def count_ready(
        self, *, queue: str | None, priority: Priority, rank: int, limit: int
    ) -> int:
        return await self._call(
            lambda: self._store.count_ready(queue=queue, priority=priority, rank=rank, limit=limit)
        )

    async def gates(
        self, *, names: Collection[str] | None = None, after: str = "", limit: int
    ) -> Sequence[GateState]:
        return await self._call(
            lambda: self._store.gates(names=names, after=after, limit=limit),
            lambda got: None if names or after else self._ledger.listed(got),
        )

    async def demand(self) -> Mapping[frozenset[str], int]:
        return await self._call(self._store.demand)

    async def stats(self) -> Stats:
        return await self._call(self._store.stats, self._ledger.counted)

    async def register(self, worker: WorkerInfo) -> None:
        await self._call(
            lambda: self._store.register(worker), lambda _: self._ledger.registered(worker)
        )

    async def beat(
        self,
        worker_id: WorkerId,
        *,
        load: int | None = None,
        status: WorkerStatus | None = None,
        blocked_by: str | None = None,
    ) -> bool:
        return await self._call(
            lambda: self._store.beat(worker_id, load=load, status=status, blocked_by=blocked_by),
            lambda ok: self._ledger.beaten(worker_id, status, ok),
        )

    async def workers(self) -> Sequence[WorkerInfo]:
        return await self._call(self._store.workers)

    async def bury(self, worker_id: WorkerId, *, beats: int | None) -> bool:
        return await self._call(
            lambda: self._store.bury(worker_id, beats=beats),
            lambda done: self._ledger.buried(worker_id, beats, done),
        )

    async def ask_to_drain(self, worker_id: WorkerId) -> bool:
        return await self._call(lambda: self._store.ask_to_drain(worker_id))

    async def requests(self, worker_id: WorkerId) -> Requests:
        return await self._call(
            lambda: self._store.requests(worker_id),
            lambda asked: self._ledger.asked_to_stop(worker_id, asked.cancel),
        )

    async def orphans(self, *, limit: int) -> Sequence[Claim]:
        return await self._call(
            lambda: self._store.orphans(limit=limit), lambda got: self._ledger.orphaned(got, limit)
        )

    async def pause(self, queue: str) -> bool:
        return await self._call(
            lambda: pauses.pause(self._store, queue), lambda new: self._ledger.paused(queue, new)
        )

    async def resume(self, queue: str) -> bool:
        return await self._call(
            lambda: pauses.resume(self._store, queue), lambda new: self._ledger.resumed(queue, new)
        )

    async def records(
        self,
        kind: str,
        *,
        limit: int,
        keys: Collection[str] | None = None,
        group: str | None = None,
        after: Record | None = None,
        newest_first: bool = False,
    ) -> Sequence[Record]:
        return await self._call(
            lambda: self._store.records(
                kind,
                limit=limit,
                keys=keys,
                group=group,
                after=after,
                newest_first=newest_first,
            )
        )

    async def take_due(self, kind: str, *, limit: int, lease: float) -> Due:
        return await self._call(lambda: self._store.take_due(kind, limit=limit, lease=lease))

    async def commit(self, changes: Changes) -> Sequence[Added]:
        try:
            return await self._call(
                lambda: self._store.commit(changes),
                lambda answers: self._ledger.committed(changes, answers, self._named(changes)),
            )
        except CLASHES:
            self._ledger.committed(changes, None, self._named(changes))
            raise

    def _named(self, *several: Changes) -> dict[Name, Record]:
        """The records that these name, as they are."""
        names = {name for changes in several for name in changes.names}
        found = [self._drive(one_record(self._store, *name)) for name in sorted(names)]
        return {(record.kind, record.key): record for record in found if record is not None}

    async def journal(self, task_id: TaskId) -> Mapping[str, bytes]:
        return await self._call(lambda: self._store.journal(task_id))

    async def now(self) -> datetime:
        return await self._call(self._store.now)

    async def schema_version(self) -> int:
        return await self._call(self._store.schema_version)

    async def migrate(self) -> Sequence[int]:
        return await self._call(self._store.migrate)

    async def check(self) -> Sequence[str]:
        return await self._call(self._store.check)

    async def open(self) -> None:
        """Opened by whoever made it."""

    async def close(self) -> None:
        """Closed by whoever made it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closed by whoever made it."""
