"""Keeps tasks in PostgreSQL 14 or later (`postgresql://…`): many hosts, one truth.

The verbs are functions in the schema (`migrations/`): one call is one commit, with a plan that is
pinned whoever calls, also through pgbouncer. Here they get their arguments and their answers are
read. "Now" is the server's clock; only tests bring another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar

from holdfast.core.attempt import Claim, Claimed, History, Refusal, Report, Settlement
from holdfast.core.fleet import Requests, WorkerInfo, WorkerStatus
from holdfast.core.gate import GateState
from holdfast.core.query import Order, Page, TaskFilter, read_cursor
from holdfast.core.record import Changes, Due, Record
from holdfast.core.stats import Standing, Stats
from holdfast.core.task import Added, NewTask, Priority, Reason, Task, TaskId, WorkerId
from holdfast.errors import StoreError
from holdfast.ports.clock import Clock
from holdfast.ports.store import Transaction
from holdfast.stores.callees import tell_nobody
from holdfast.stores.columns import as_time
from holdfast.stores.postgres import (
    checks,
    listing,
    numbers,
    operations,
    reads,
    records,
    schema,
    settlements,
    upkeep,
    within,
)
from holdfast.stores.postgres.add import Adding
from holdfast.stores.postgres.address import parse
from holdfast.stores.postgres.blocking import transaction as blocking_transaction
from holdfast.stores.postgres.claims import Ask, claim
from holdfast.stores.postgres.connections import HOT_TIMEOUT, Connection, Connections
from holdfast.stores.postgres.lanes import Lanes
from holdfast.stores.postgres.passed_on import tell
from holdfast.stores.postgres.queries import queries
from holdfast.stores.postgres.shrinking import TableShrinker
from holdfast.stores.postgres.transactions import transaction
from holdfast.stores.postgres.values import safe_text

T = TypeVar("T")


class PostgresStore:
    """All of `ports.store.Store` in one database. Open once per process; any event loop may use
    it.
    """

    abilities = frozenset({"durable", "many_processes", "transactions"})

    def __init__(self, url: str, *, clock: Clock | None = None, schema: str | None = None) -> None:
        self.passed_on: Callable[[Mapping[str, int]], None] = tell_nobody
        self._address = parse(url, schema)
        self._clock = clock
        self._sql = queries(self._address.schema)
        self._lanes = Lanes(self._sql)
        self._connections: Connections | None = None
        self._adding: Adding | None = None
        self._sweeper: upkeep.Sweeper | None = None
        self._shrinker = TableShrinker()
        self._lent = Connections(self._address, lent=True)

    @property
    def url(self) -> str:
        return self._address.shown

    # Tasks

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        if self._adding is None:
            raise self._not_open()
        return await self._adding.add(tasks, window=idempotency_window, now=self._now)

    async def get(self, task_id: TaskId) -> Task | None:
        return await self._read(lambda db: reads.get(db, self._sql, self._lanes, task_id))

    async def list(
        self,
        where: TaskFilter,
        *,
        limit: int,
        after: str | None = None,
        order: Order = Order.NEWEST,
    ) -> Page:
        edge = read_cursor(after, order)
        return await self._read(
            lambda db: listing.page(
                db, self._sql, self._lanes, where, limit=limit, edge=edge, order=order
            )
        )

    async def count(self, where: TaskFilter, *, limit: int) -> int:
        return await self._read(lambda db: reads.count(db, self._sql, where, limit=limit))

    async def history(self, task_id: TaskId) -> History | None:
        return await self._read(lambda db: reads.history(db, self._sql, task_id))

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        ask = Ask(worker_id, None if queues is None else list(queues), list(capabilities), limit)
        return await self._open.do(
            lambda db: claim(db, self._sql, self._lanes, ask, self._now),
            worker=worker_id,
            within=HOT_TIMEOUT,
        )

    async def save(self, settled: Sequence[Settlement]) -> Sequence[Refusal]:
        if not settled:
            return ()
        refused, passed = await self._hot(
            lambda db: records.save(db, self._sql, self._lanes, settled, self._now)
        )
        if self._sweeper is not None:
            self._sweeper.passed(len(settled))
        await self._tell(passed)
        return refused

    async def report(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        if not reports:
            return ()
        return await self._open.do(
            lambda db: settlements.report(db, self._sql, reports, self._now), within=HOT_TIMEOUT
        )

    async def cancel(
        self, where: TaskFilter, *, limit: int, reason: Reason = Reason.CANCELLED
    ) -> Sequence[Task]:
        changed, passed = await self._open.do(
            lambda db: operations.cancel(
                db, self._sql, self._lanes, where, limit=limit, reason=reason, now=self._now
            )
        )
        await self._tell(passed)
        return changed

    async def requeue(
        self,
        where: TaskFilter,
        *,
        limit: int,
        head_starts: Mapping[str, int],
        pace: float | None = None,
    ) -> Sequence[Task]:
        return await self._open.do(
            lambda db: operations.requeue(
                db, self._sql, self._lanes, where,
                limit=limit, head_starts=head_starts, pace=pace, now=self._now,
            )
        )  # fmt: skip

    async def discard(self, where: TaskFilter, *, limit: int) -> int:
        return await self._open.do(lambda db: operations.discard(db, self._sql, where, limit=limit))

    async def prune(self, *, retention: float, dead_letter_retention: float, limit: int) -> int:
        return await self._open.do(
            lambda db: operations.prune(
                db, self._sql,
                retention=retention, dead_letter_retention=dead_letter_retention,
                limit=limit, now=self._now,
            )
        )  # fmt: skip

    async def standing(self, task_id: TaskId) -> Standing | None:
        return await self._read(
            lambda db: reads.standing(db, self._sql, self._lanes, task_id, self._now)
        )

    async def count_ready(
        self, *, queue: str | None, priority: Priority, rank: int, limit: int
    ) -> int:
        asked = (queue, priority.value, rank, limit)
        return int(await self._read(lambda db: db.fetchval(self._sql["count_ready"], *asked)))

    async def gates(
        self, *, names: Collection[str] | None = None, after: str = "", limit: int
    ) -> Sequence[GateState]:
        return await self._read(lambda db: reads.gates(db, self._sql, names, after, limit))

    async def demand(self) -> Mapping[frozenset[str], int]:
        found = await self._read(lambda db: db.fetch(self._sql["demand"]))
        return {frozenset(requires): number for requires, number in found}

    async def stats(self) -> Stats:
        return await self._read(lambda db: numbers.stats(db, self._sql, self._lanes, self._now))

    # Workers

    async def register(self, worker: WorkerInfo) -> None:
        queues = None if worker.queues is None else list(worker.queues)
        values = (
            worker.id, worker.host, worker.pid, worker.version, queues,
            sorted(worker.capabilities), worker.capacity, worker.load, worker.status.value,
            worker.beats, self._now, worker.kind,
        )  # fmt: skip
        await self._hot(lambda db: db.execute(self._sql["register"], *values))

    async def beat(
        self,
        worker_id: WorkerId,
        *,
        load: int | None = None,
        status: WorkerStatus | None = None,
        blocked_by: str | None = None,
    ) -> bool:
        said = status.value if status else None
        values = (worker_id, load, said, self._now, blocked_by)
        return await self._ask("beat", *values)

    async def workers(self) -> Sequence[WorkerInfo]:
        return await self._read(lambda db: reads.workers(db, self._sql))

    async def bury(self, worker_id: WorkerId, *, beats: int | None) -> bool:
        return await self._ask("bury", worker_id, beats)

    async def ask_to_drain(self, worker_id: WorkerId) -> bool:
        return await self._ask("ask_to_drain", safe_text(worker_id))

    async def requests(self, worker_id: WorkerId) -> Requests:
        return await self._hot(lambda db: reads.requests(db, self._sql, worker_id))

    async def orphans(self, *, limit: int) -> Sequence[Claim]:
        found = await self._open.do(
            lambda db: reads.orphans(db, self._sql, self._lanes, limit=limit)
        )
        if not found:  # a rescuer looked, and has nobody to rescue
            await self._open.do(lambda db: upkeep.sweep_up(db, self._sql))
            await self._open.do(lambda db: self._shrinker.give_back(db, self._sql))
        return found

    # Records and the journal

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
        return await self._hot(
            lambda db: records.page(
                db, self._sql, kind,
                limit=limit, keys=keys, group=group, after=after, newest_first=newest_first,
            )
        )  # fmt: skip

    async def take_due(self, kind: str, *, limit: int, lease: float) -> Due:
        return await self._open.do(
            lambda db: records.take_due(
                db, self._sql, kind, limit=limit, lease=lease, now=self._now
            ),
            within=HOT_TIMEOUT,
        )

    async def commit(self, changes: Changes) -> Sequence[Added]:
        answers, passed = await self._hot(
            lambda db: records.commit(db, self._sql, self._lanes, changes, self._now)
        )
        await self._tell(passed)
        return answers

    async def journal(self, task_id: TaskId) -> Mapping[str, bytes]:
        return await self._hot(lambda db: records.journal(db, self._sql, task_id))

    async def now(self) -> datetime:
        return as_time(await self._hot(lambda db: db.fetchval(self._sql["now"], self._now)))

    # Transactions

    def transaction(
        self, claim: Claim, *, blocking: bool = False
    ) -> AbstractAsyncContextManager[Transaction]:
        own, lent = self._open, self._lent
        if blocking:
            return blocking_transaction(
                self._address, own, self._sql, claim, tell=self._tell, now=self._now
            )
        return transaction(
            lent, own, self._sql, claim, tell=self._tell, where=self.url, now=self._now
        )

    def add_within(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> Sequence[Added]:
        return within.add(self._sql, connection, tasks, window=idempotency_window, now=self._now)

    async def add_within_async(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> Sequence[Added]:
        return await within.add_async(
            self._sql, connection, tasks, window=idempotency_window, now=self._now
        )

    # Schema: also of a store that cannot be opened because its version is another.

    async def schema_version(self) -> int:
        return await self._on_its_own(lambda db: schema.found_version(db, self._sql))

    async def migrate(self) -> Sequence[int]:
        return await self._on_its_own(lambda db: schema.migrate(db, self._sql, self.url))

    async def check(self) -> Sequence[str]:
        return await self._open.do(lambda db: checks.problems(db, self._sql))

    # Opening and closing

    async def open(self) -> None:
        if self._connections is not None:
            return
        connections = Connections(self._address)
        try:
            await connections.do(lambda db: schema.open_schema(db, self._sql, self.url))
        except BaseException:
            await connections.close()
            raise
        self._connections = connections
        self._lent = Connections(self._address, lent=True)
        self._adding = Adding(connections, self._sql, self._lanes, self._tell)
        self._sweeper = upkeep.Sweeper(connections, self._sql)

    async def close(self) -> None:
        connections, self._connections = self._connections, None
        adding, self._adding = self._adding, None
        sweeper, self._sweeper = self._sweeper, None
        if sweeper is not None:
            await sweeper.close()
        if adding is not None:
            await adding.finish()
        if connections is not None:
            await connections.close()
            await self._lent.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # Steps of the above

    @property
    def _now(self) -> int | None:
        return None if self._clock is None else self._clock.now_us()

    @property
    def _open(self) -> Connections:
        if self._connections is None:
            raise self._not_open()
        return self._connections

    async def _tell(self, passed: str | None) -> None:
        await tell(passed, self._open, self._lanes, self.passed_on)

    async def _ask(self, question: str, *values: object) -> bool:
        return bool(await self._hot(lambda db: db.fetchval(self._sql[question], *values)))

    async def _read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """What changes nothing, and may take its time."""
        return await self._open.do(work, repeats=True)

    async def _hot(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """What a worker waits for, and what may be said twice."""
        return await self._open.do(work, repeats=True, within=HOT_TIMEOUT)

    async def _on_its_own(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """On a connection for this once, so that the store need not be open."""
        connections = Connections(self._address)
        try:
            return await connections.do(work)
        finally:
            await connections.close()

    def _not_open(self) -> StoreError:
        return StoreError(
            f"the store {self.url} is not open in this process. Open it with `async with`; after a "
            "fork, open it anew."
        )
