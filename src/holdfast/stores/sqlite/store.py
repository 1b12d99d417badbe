"""Keeps tasks in one SQLite file (`sqlite:///holdfast.db`): no server, many processes, one host.

`writer.py` has the one connection that writes and explains how commits are shared; `readers.py` has
those that read. Each method here says who does the work. What the columns mean is in
`migrations/`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from holdfast.core.attempt import Claim, Claimed, History, Refusal, Report, Settlement
from holdfast.core.fleet import Requests, WorkerInfo, WorkerStatus
from holdfast.core.gate import GateState
from holdfast.core.lifecycle import Released, settle
from holdfast.core.query import Order, Page, TaskFilter, read_cursor
from holdfast.core.record import Changes, Due, Record
from holdfast.core.stats import Standing, Stats
from holdfast.core.task import Added, NewTask, Priority, Reason, Task, TaskId, WorkerId
from holdfast.errors import StoreError
from holdfast.ports.clock import Clock
from holdfast.ports.store import Transaction
from holdfast.stores.callees import tell_nobody
from holdfast.stores.clock import SystemClock
from holdfast.stores.columns import as_time
from holdfast.stores.sqlite import (
    add,
    checks,
    fleet,
    numbers,
    operations,
    reads,
    records,
    schema,
    transactions,
    within,
)
from holdfast.stores.sqlite.claims import Ask, Claiming, Taken
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.faults import explained
from holdfast.stores.sqlite.gate_lines import gate_states
from holdfast.stores.sqlite.lanes import Lanes
from holdfast.stores.sqlite.readers import Readers
from holdfast.stores.sqlite.rownumbers import RowNumbers
from holdfast.stores.sqlite.settlements import SettlementBatch, report, save
from holdfast.stores.sqlite.switch_interval import SHORT_SWITCH_INTERVAL
from holdfast.stores.sqlite.writer import Again, Unit, Writer

T = TypeVar("T")


class SQLiteStore:
    """All of `ports.store.Store` in one file. Open once per process; any event loop may use it."""

    abilities = frozenset({"durable", "many_processes", "one_writer", "transactions"})

    def __init__(self, path: str | Path, *, clock: Clock | None = None) -> None:
        self.passed_on: Callable[[Mapping[str, int]], None] = tell_nobody
        self._path = Path(path)
        self._clock = clock or SystemClock()
        self._lanes = Lanes()
        self._claiming = Claiming()
        self._numbers = RowNumbers()
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._pid = 0

    @property
    def url(self) -> str:
        return f"sqlite:///{self._path}"

    # Tasks

    async def add(self, tasks: Sequence[NewTask], *, idempotency_window: float) -> Sequence[Added]:
        return await self._write_and_tell(
            lambda unit: add.add(unit, tasks, idempotency_window=idempotency_window)
        )

    async def get(self, task_id: TaskId) -> Task | None:
        return await self._read(lambda db: reads.get(db, self._lanes, task_id))

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
            lambda db: reads.page(db, self._lanes, where, limit=limit, edge=edge, order=order)
        )

    async def count(self, where: TaskFilter, *, limit: int) -> int:
        return await self._read(lambda db: reads.count(db, where, limit=limit))

    async def history(self, task_id: TaskId) -> History | None:
        return await self._read(lambda db: reads.history(db, task_id))

    async def claim(
        self,
        worker_id: WorkerId,
        *,
        queues: Collection[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> Claimed:
        ask = Ask(worker_id, None if queues is None else frozenset(queues), capabilities, limit)
        taken = await self._write(
            lambda unit: self._claiming.claim(unit, ask),
            peek=lambda unit: self._claiming.peek(unit, ask),
            undo=self._hand_back,
        )
        return taken.claimed(self._numbers)

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        batch = SettlementBatch.of(settlements, self._numbers)
        return await self._write_and_tell(lambda unit: save(unit, batch))

    async def report(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        return await self._write(lambda unit: report(unit, reports))

    async def cancel(
        self, where: TaskFilter, *, limit: int, reason: Reason = Reason.CANCELLED
    ) -> Sequence[Task]:
        chosen = await self._read(lambda db: operations.choose_to_cancel(db, where, limit))
        if not chosen:
            return []
        return await self._write_and_tell(
            lambda unit: operations.cancel(unit, where, chosen, reason)
        )

    async def requeue(
        self,
        where: TaskFilter,
        *,
        limit: int,
        head_starts: Mapping[str, int],
        pace: float | None = None,
    ) -> Sequence[Task]:
        chosen = await self._read(lambda db: operations.choose_to_requeue(db, where, limit))
        if not chosen:
            return []
        return await self._write(
            lambda unit: operations.requeue(unit, where, chosen, head_starts=head_starts, pace=pace)
        )

    async def discard(self, where: TaskFilter, *, limit: int) -> int:
        chosen = await self._read(lambda db: operations.choose_to_forget(db, where, limit))
        if not chosen:
            return 0
        return await self._write(lambda unit: operations.discard(unit, where, chosen))

    async def prune(self, *, retention: float, dead_letter_retention: float, limit: int) -> int:
        return await self._write(
            lambda unit: operations.prune(
                unit,
                retention=retention,
                dead_letter_retention=dead_letter_retention,
                limit=max(0, limit),
            )
        )

    async def standing(self, task_id: TaskId) -> Standing | None:
        return await self._read(
            lambda db: reads.standing(db, self._lanes, task_id, now=self._clock.now_us())
        )

    async def count_ready(
        self, *, queue: str | None, priority: Priority, rank: int, limit: int
    ) -> int:
        return await self._read(lambda db: reads.count_ready(db, queue, priority, rank, limit))

    async def gates(
        self, *, names: Collection[str] | None = None, after: str = "", limit: int
    ) -> Sequence[GateState]:
        return await self._read(lambda db: gate_states(db, names, after=after, limit=limit))

    async def demand(self) -> Mapping[frozenset[str], int]:
        return await self._read(numbers.demand)

    async def stats(self) -> Stats:
        return await self._read(lambda db: numbers.stats(db, self._lanes, now=self._clock.now_us()))

    # Workers

    async def register(self, worker: WorkerInfo) -> None:
        await self._write(lambda unit: fleet.register(unit, worker))

    async def beat(
        self,
        worker_id: WorkerId,
        *,
        load: int | None = None,
        status: WorkerStatus | None = None,
        blocked_by: str | None = None,
    ) -> bool:
        return await self._write(lambda unit: fleet.beat(unit, worker_id, load, status, blocked_by))

    async def workers(self) -> Sequence[WorkerInfo]:
        return await self._read(reads.workers)

    async def bury(self, worker_id: WorkerId, *, beats: int | None) -> bool:
        return await self._write(lambda unit: fleet.bury(unit, worker_id, beats))

    async def ask_to_drain(self, worker_id: WorkerId) -> bool:
        return await self._write(lambda unit: fleet.ask_to_drain(unit, worker_id))

    async def requests(self, worker_id: WorkerId) -> Requests:
        return await self._read(lambda db: reads.requests(db, worker_id))

    async def orphans(self, *, limit: int) -> Sequence[Claim]:
        return await self._read(lambda db: reads.orphans(db, self._lanes, limit=limit))

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
        return await self._read(
            lambda db: records.page(
                db, kind,
                limit=limit, keys=keys, group=group, after=after, newest_first=newest_first,
            )
        )  # fmt: skip

    async def take_due(self, kind: str, *, limit: int, lease: float) -> Due:
        return await self._write(
            lambda unit: records.take_due(unit, kind, limit=limit, lease=lease),
            peek=lambda unit: records.none_due(unit, kind),
        )

    async def commit(self, changes: Changes) -> Sequence[Added]:
        return await self._write_and_tell(lambda unit: records.commit(unit, changes))

    async def journal(self, task_id: TaskId) -> Mapping[str, bytes]:
        return await self._read(lambda db: records.journal(db, task_id))

    async def now(self) -> datetime:
        return as_time(self._clock.now_us())

    # Transactions

    def transaction(
        self, claim: Claim, *, blocking: bool = False
    ) -> AbstractAsyncContextManager[Transaction]:
        return transactions.transaction(
            self._path, self._clock, claim, tell=self._tell, blocking=blocking
        )

    def add_within(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> Sequence[Added]:
        return within.add(self._path, self._clock, connection, tasks, window=idempotency_window)

    async def add_within_async(
        self, connection: object, tasks: Sequence[NewTask], *, idempotency_window: float
    ) -> Sequence[Added]:
        return await within.add_async(
            self._path, self._clock, connection, tasks, window=idempotency_window
        )

    # Schema: also of a store that cannot be opened because its version is another.

    async def schema_version(self) -> int:
        if not self._path.exists() or not self._path.stat().st_size:
            return 0  # connecting would write the first page
        return await asyncio.to_thread(self._on_its_own, schema.found_version, create=False)

    async def migrate(self) -> Sequence[int]:
        return await asyncio.to_thread(
            self._on_its_own, lambda db: schema.migrate(db, self._path), create=True
        )

    async def check(self) -> Sequence[str]:
        settings = await self._write(
            lambda unit: checks.risky_settings(unit.db),
            peek=lambda unit: checks.risky_settings(unit.db),
        )
        return [
            *checks.on_a_network(self._path),
            *settings,
            *await self._read(lambda db: checks.problems(db, now=self._clock.now_us())),
        ]

    # Opening and closing

    async def open(self) -> None:
        if self._writer is not None and self._pid == os.getpid():
            return
        db = await asyncio.to_thread(schema.open_database, self._path, create=True)
        self._lanes.forget()
        self._pid = os.getpid()
        self._readers = Readers(self._path)
        self._writer = Writer(self._path, self._clock, self._lanes, forget=self._numbers.forget)
        self._writer.start(db)

    async def close(self) -> None:
        writer, readers, self._writer, self._readers = self._writer, self._readers, None, None
        if writer is None or readers is None or self._pid != os.getpid():
            return  # what a fork left behind is the parent's to close
        await asyncio.to_thread(readers.stop)
        await asyncio.to_thread(writer.stop)

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

    async def _write(
        self,
        work: Callable[[Unit], T | Again],
        *,
        peek: Callable[[Unit], T | None] | None = None,
        undo: Callable[[T], None] | None = None,
    ) -> T:
        if self._writer is None or self._pid != os.getpid():
            raise self._not_open()
        with SHORT_SWITCH_INTERVAL:
            return await self._writer.do(work, peek=peek, undo=undo)

    async def _write_and_tell(self, work: Callable[[Unit], T]) -> T:
        """Write, and tell of those whom that let pass their last gate."""

        def work_and_note(unit: Unit) -> tuple[T, Mapping[str, int]]:
            unit.passed.clear()
            return work(unit), unit.callees()

        answer, queues = await self._write(work_and_note)
        self._tell(queues)
        return answer

    def _tell(self, queues: Mapping[str, int]) -> None:
        if queues:
            self.passed_on(queues)

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        if self._readers is None or self._pid != os.getpid():
            raise self._not_open()
        with SHORT_SWITCH_INTERVAL:
            return await self._readers.read(query)

    def _not_open(self) -> StoreError:
        if self._writer is not None:
            return StoreError(
                f"{self.url} was opened by process {self._pid} and carried over a fork into "
                f"process {os.getpid()}. Open a store of its own in every process, after the fork."
            )
        return StoreError(f"{self.url} is not open. Use `async with` or call `open()` first.")

    def _on_its_own(self, query: Callable[[sqlite3.Connection], T], *, create: bool) -> T:
        """Run on a connection that is opened and closed for it."""
        with explained(self._path):
            db = connect(self._path, create=create)
            try:
                return query(db)
            finally:
                db.close()

    def _hand_back(self, taken: Taken) -> None:
        """Nobody waits for these claims any more: let others have the tasks."""
        if taken.line is not None and self._writer is not None:
            batch = SettlementBatch.of(
                [
                    settle(claim, Released(), backoff=lambda _: 0.0, crash_limit=1)
                    for claim in taken.claimed(self._numbers).claims
                ],
                self._numbers,
            )
            self._writer.tell(lambda unit: save(unit, batch))
