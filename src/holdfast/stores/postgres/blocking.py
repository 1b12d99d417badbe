"""Transactions of sync handlers: as in `transactions`, on a psycopg connection of their own.

The store's driver is asynchronous, so sync handlers get the other one, if it is installed. Each
transaction opens a connection (some 10 ms): handlers that need it a thousand times a second are
better written as `async def`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, Self

from holdfast.asyncio_tools.shield import to_the_end
from holdfast.borrowed.adapters import formatted
from holdfast.core.attempt import Claim, Report, Settlement
from holdfast.errors import HoldfastError, LeaseLost, StoreUnavailable, Unsupported
from holdfast.stores.postgres.address import Address
from holdfast.stores.postgres.connections import CONNECT_TIMEOUT, Connections
from holdfast.stores.postgres.passed_on import Tell
from holdfast.stores.postgres.queries import Queries
from holdfast.stores.postgres.transactions import ENDED_INSIDE, completion_values, refusal

if TYPE_CHECKING:
    import psycopg

    Lent = psycopg.Connection[tuple[Any, ...]]

_OURS = (
    "this transaction belongs to the task: leaving the `ctx.transaction()` block commits it, "
    "together with the task's completion, and an exception rolls it back. For a part of it use "
    "`with conn.transaction()`."
)


@asynccontextmanager
async def transaction(
    address: Address, own: Connections, sql: Queries, claim: Claim, *, tell: Tell, now: int | None
) -> AsyncIterator[BlockingTransaction]:
    """Open a transaction for one attempt; look things up on `own`."""
    inside = BlockingTransaction(address, own, sql, claim, tell, now=now)
    try:
        await asyncio.to_thread(inside.begin)
        yield inside
    finally:
        await to_the_end(asyncio.to_thread(inside.end))


class BlockingTransaction:
    """All of `ports.store.Transaction`, around a `psycopg.Connection`."""

    def __init__(
        self,
        address: Address,
        own: Connections,
        sql: Queries,
        claim: Claim,
        tell: Tell,
        *,
        now: int | None,
    ) -> None:
        self._address = address
        self._own = own
        self._sql = sql
        self._claim = claim
        self._tell = tell
        self._now = now
        self._fence = (claim.task_id, claim.attempt, claim.worker_id)
        self._connection: Lent | None = None

    @property
    def connection(self) -> Lent:
        assert self._connection is not None
        return self._connection

    def begin(self) -> None:
        """Connect, and see whether the lease holds. Blocks."""
        psycopg = _driver()
        try:
            self._connection = _lending_kind().connect(
                self._address.dsn, prepare_threshold=None, connect_timeout=int(CONNECT_TIMEOUT)
            )
            found = self._run("holds_lease", self._fence).fetchone()
        except psycopg.OperationalError as error:
            raise self._unavailable(error) from error
        if not found or not found[0]:
            raise LeaseLost(self._claim.task_id, self._claim.attempt)

    async def complete(self, settlement: Settlement, report: Report | None = None) -> None:
        await self._tell(await asyncio.to_thread(self._complete, settlement, report))

    async def committed(self) -> bool:
        await asyncio.to_thread(self.end)
        found = await self._own.do(lambda db: db.fetchval(self._sql["was_completed"], *self._fence))
        return bool(found)

    def end(self) -> None:
        """Roll back what was not committed. Blocks."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _complete(self, settlement: Settlement, report: Report | None) -> str | None:
        psycopg = _driver()
        connection = self.connection
        if connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            raise HoldfastError(ENDED_INSIDE)
        try:
            values = completion_values(settlement, report)
            found = self._run("complete_within", (*self._fence, *values, self._now)).fetchone()
            psycopg.Connection.commit(connection)
        except psycopg.OperationalError as error:
            raise self._unavailable(error) from error
        except psycopg.Error as error:
            raise refusal(error.sqlstate, error.diag.message_hint, self._claim) or error from error
        return found[0] if found else None

    def _run(self, name: str, values: tuple[object, ...]) -> psycopg.Cursor[tuple[Any, ...]]:
        statement, ordered = formatted(self._sql[name], values)
        return self.connection.execute(statement.encode(), ordered)

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return StoreUnavailable(
            f"{self._address.shown} does not answer ({first}). What was under way may or may not "
            "have been written. Nothing needs restarting."
        )


def _driver() -> Any:
    try:
        import psycopg  # noqa: PLC0415 - only sync handlers need it
    except ImportError:
        raise Unsupported(
            "ctx.transaction() in a sync handler on PostgreSQL needs psycopg 3: pip install "
            "'psycopg[binary]'. Or make the handler `async def`, which needs nothing more."
        ) from None
    return psycopg


@cache
def _lending_kind() -> Any:
    """psycopg's connection without what would end its transaction."""

    class LentConnection(_driver().Connection):  # type: ignore[misc] # imported only if needed
        def commit(self) -> NoReturn:
            raise HoldfastError(f"commit: {_OURS}")

        def rollback(self) -> NoReturn:
            raise HoldfastError(f"rollback: {_OURS}")

        def __enter__(self) -> Self:
            raise HoldfastError(f"`with connection:` would commit at its end: {_OURS}")

    return LentConnection
