"""Transactions of handlers: their writes and the completion of their task in one commit.

Each has a connection of its own, because the writer's is shared by everybody. It begins with
BEGIN IMMEDIATE: SQLite has one writer at a time, and a transaction that only reads first would be
refused its first write if anybody wrote in between. So **while a handler is inside, all other
writers of the file wait**, claims, saves and heartbeats of every process included: up to
`BUSY_TIMEOUT` seconds, after which they are told that the store is unavailable. The page for users
says to compute first and enter late.

The lease is looked at on entering. Nobody else can write while the transaction is open, so the
lease cannot be lost inside; completing is fenced all the same, by the statements of `settlements`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from holdfast.asyncio_tools.shield import to_the_end
from holdfast.core.attempt import Claim, Report, Settlement
from holdfast.core.task import AttemptEnd
from holdfast.errors import HoldfastError, LeaseLost
from holdfast.ports.clock import Clock
from holdfast.stores.sqlite import settlements
from holdfast.stores.sqlite.connection import (
    FileId,
    connect,
    connect_reader,
    file_at,
    patiently,
    vanished,
)
from holdfast.stores.sqlite.faults import explained
from holdfast.stores.sqlite.lanes import Lanes
from holdfast.stores.sqlite.lent import AsyncConnection, LentConnection
from holdfast.stores.sqlite.queries import SCHEMA, TRANSACTIONS
from holdfast.stores.sqlite.switch_interval import SHORT_SWITCH_INTERVAL
from holdfast.stores.sqlite.writer import Unit

T = TypeVar("T")

_ENDED_WELL: Final = AttemptEnd.COMPLETED.value


@asynccontextmanager
async def transaction(
    path: Path,
    clock: Clock,
    claim: Claim,
    *,
    tell: Callable[[Mapping[str, int]], None],
    blocking: bool,
) -> AsyncIterator[SQLiteTransaction]:
    """Open a transaction for one attempt. `tell` hears of those whom its end let pass."""
    inside = SQLiteTransaction(path, clock, claim, tell, is_blocking=blocking)
    try:
        await inside.begin()
        yield inside
    finally:
        await inside.end()


class SQLiteTransaction:
    """All of `ports.store.Transaction`. Its statements run on one thread, one after another."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        claim: Claim,
        tell: Callable[[Mapping[str, int]], None],
        *,
        is_blocking: bool,
    ) -> None:
        self._path = path
        self._file: FileId | None = None
        self._clock = clock
        self._claim = claim
        self._tell = tell
        self._is_blocking = is_blocking
        self._is_over = False
        self._db: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-transaction")

    @property
    def connection(self) -> LentConnection | AsyncConnection:
        assert isinstance(self._db, LentConnection)
        return self._db if self._is_blocking else AsyncConnection(self._db, self._thread)

    async def begin(self) -> None:
        await self._do(self._begin)

    async def complete(self, settlement: Settlement, report: Report | None = None) -> None:
        with SHORT_SWITCH_INTERVAL:
            queues = await self._do(lambda: self._complete(settlement, report))
        self._tell(queues)

    async def committed(self) -> bool:
        return await self._do(self._was_committed)

    async def end(self) -> None:
        """Roll back what was not committed, and let go."""
        self._is_over = True
        try:
            await to_the_end(self._do(self._close))
        finally:
            self._thread.shutdown(wait=False)

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _begin(self) -> None:
        with explained(self._path):
            db = self._db = connect(self._path, kind=LentConnection)
            self._file = file_at(self._path)
            patiently(self._take_turn)
            fence = (self._claim.task_id, self._claim.attempt, self._claim.worker_id)
            if db.execute(TRANSACTIONS["holds_lease"], fence).fetchone() is None:
                raise LeaseLost(self._claim.task_id, self._claim.attempt)

    def _take_turn(self) -> None:
        if self._is_over:
            raise HoldfastError("nobody waits for this transaction any more")
        assert self._db is not None
        self._db.execute(SCHEMA["begin_write"])

    def _complete(self, settlement: Settlement, report: Report | None) -> Mapping[str, int]:
        db = self._db
        if db is None or not db.in_transaction:
            raise HoldfastError(
                "the transaction was ended inside the `ctx.transaction()` block, by a COMMIT "
                "or ROLLBACK among its statements. What it wrote and the task's completion can no "
                "longer be one; the attempt has failed."
            )
        db.row_factory, db.text_factory = None, str  # the handler may have set its own
        with explained(self._path):
            unit = Unit(db, Lanes(), self._clock)
            if report is not None:
                settlements.report(unit, [report])
            for refusal in settlements.save_carefully(unit, [settlement], unit.now):
                raise LeaseLost(refusal.task_id, refusal.attempt, holder=refusal.holder)
            unit.tally.write(db)
            if file_at(self._path) != self._file:
                raise vanished(self._path)
            queues = unit.callees()
            db.execute(SCHEMA["commit"])
        return queues

    def _was_committed(self) -> bool:
        self._close()
        with explained(self._path):
            db = connect_reader(self._path)
            try:
                fence = (self._claim.task_id, self._claim.attempt, self._claim.worker_id)
                found = db.execute(TRANSACTIONS["ended"], fence).fetchone()
            finally:
                db.close()
        return found is not None and found["ended"] == _ENDED_WELL

    def _close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute(SCHEMA["rollback"])
            db.close()
