"""Transactions of handlers: their writes and the completion of their task in one commit.

They have connections of their own, apart from those the worker claims and saves with: handlers that
hold all of them must not keep the worker from its work.

The lease is looked at on entering, so that a zombie does not begin, and taken as the last act
before COMMIT. In between the task's row is not locked: others may rescue it meanwhile, and then the
last act is refused and all is rolled back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg
import orjson

from holdfast.asyncio_tools.shield import to_the_end
from holdfast.core.attempt import Claim, Report, Settlement
from holdfast.errors import HoldfastError, LeaseLost
from holdfast.stores.columns import progress_text
from holdfast.stores.postgres.connections import Connection, Connections
from holdfast.stores.postgres.faults import explain
from holdfast.stores.postgres.passed_on import Tell
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.values import safe_text

PATIENCE: Final = 15.0
"""Seconds for what is ours in a transaction. The handler's own statements take what they need."""
LEASE_LOST: Final = "HF003"
_ABORTED: Final = "25P02"
ENDED_INSIDE: Final = (
    "the transaction was ended inside the `ctx.transaction()` block, by a COMMIT or ROLLBACK among "
    "its statements. What it wrote and the task's completion can no longer be one; the attempt has "
    "failed."
)
_BROKEN = (
    OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError,
    asyncpg.PostgresError,
)  # fmt: skip


@asynccontextmanager
async def transaction(
    lent: Connections,
    own: Connections,
    sql: Queries,
    claim: Claim,
    *,
    tell: Tell,
    where: str,
    now: int | None,
) -> AsyncIterator[PostgresTransaction]:
    """Open a transaction for one attempt on a connection of `lent`; look things up on `own`."""
    raised: BaseException | None = None
    async with _borrowed(lent, where) as connection:
        inside = PostgresTransaction(connection, own, sql, claim, tell, where=where, now=now)
        # What the handler raises says nothing about the connection, so it goes around the pool.
        try:
            await inside.begin()
            yield inside
        except GeneratorExit:
            connection.terminate()
            raise
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised = error
        await to_the_end(inside.end())
    if raised is not None:
        raise raised


@asynccontextmanager
async def _borrowed(lent: Connections, where: str) -> AsyncIterator[Connection]:
    """A connection, its errors explained as far as they come from getting one."""
    context = lent.connection()
    try:
        connection = await context.__aenter__()
    except _BROKEN as error:
        raise explain(error, where) from error
    try:
        yield connection
    finally:
        await context.__aexit__(None, None, None)


class PostgresTransaction:
    """All of `ports.store.Transaction`."""

    def __init__(
        self,
        connection: Connection,
        own: Connections,
        sql: Queries,
        claim: Claim,
        tell: Tell,
        *,
        where: str,
        now: int | None,
    ) -> None:
        self.connection = connection
        self._own = own
        self._sql = sql
        self._claim = claim
        self._tell = tell
        self._where = where
        self._now = now
        self._fence = (claim.task_id, claim.attempt, claim.worker_id)
        self._transaction = connection.transaction(isolation="read_committed")

    async def begin(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._transaction.start()
                holds = await self.connection.fetchval(self._sql["holds_lease"], *self._fence)
        except _BROKEN as error:
            raise explain(error, self._where) from error
        if not holds:
            raise LeaseLost(self._claim.task_id, self._claim.attempt)

    async def complete(self, settlement: Settlement, report: Report | None = None) -> None:
        if not self.connection.is_in_transaction():
            raise HoldfastError(ENDED_INSIDE)
        try:
            values = completion_values(settlement, report)
            async with asyncio.timeout(PATIENCE):
                passed = await self.connection.fetchval(
                    self._sql["complete_within"], *self._fence, *values, self._now
                )
                await self._transaction.commit()
        except asyncpg.PostgresError as error:
            refused = refusal(error.sqlstate, error.hint, self._claim)
            raise refused or explain(error, self._where) from error
        except _BROKEN as error:
            self.connection.terminate()
            raise explain(error, self._where) from error
        await self._tell(passed)

    async def committed(self) -> bool:
        if self.connection.is_in_transaction():
            await self.end()  # it cannot be committed any more, whatever it was
        found = await self._own.do(lambda db: db.fetchval(self._sql["was_completed"], *self._fence))
        return bool(found)

    async def end(self) -> None:
        """Roll back what was not committed, and leave the connection as it was found."""
        connection = self.connection
        try:
            if not connection.is_closed():
                # Not by the driver's transaction object: the handler may have left others open.
                await connection.reset(timeout=5.0)
        except _BROKEN:
            connection.terminate()


def refusal(state: str | None, hint: str | None, claim: Claim) -> HoldfastError | None:
    """What the server's answer to a completion means, if it is about the task."""
    if state == LEASE_LOST:
        return LeaseLost(claim.task_id, claim.attempt, holder=hint or None)
    if state == _ABORTED:
        return HoldfastError(
            "a statement inside the `ctx.transaction()` block failed and its error was caught: "
            "PostgreSQL then takes nothing more. Put what may fail into `conn.transaction()`, "
            "which is a savepoint there."
        )
    return None


def completion_values(settlement: Settlement, report: Report | None) -> tuple[object, ...]:
    """In the order of `complete_within`, after the fence."""
    ended = (settlement.charged, settlement.crash_count, settlement.result)
    if report is None:
        return (*ended, None, None, None, None, None)
    cost = report.cost
    spent = (None,) * 3 if cost is None else (cost.units, cost.tokens_in, cost.tokens_out)
    lines = orjson.dumps([safe_text(line) for line in report.logs]).decode()
    return (*ended, progress_text(report.progress), *spent, lines)
