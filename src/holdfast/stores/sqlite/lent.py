"""Connections lent to handlers by `ctx.transaction()`: theirs to write with, ours to commit.

A sync handler gets the `sqlite3.Connection` itself, with everything taken out that would end the
transaction. An `async def` handler gets an `AsyncConnection`, which does the same on a thread of
its own, so that the event loop never waits for the disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, NoReturn, Self, TypeVar

from holdfast.errors import HoldfastError

T = TypeVar("T")
Parameters = Sequence[Any] | Mapping[str, Any]

_OURS: Final = (
    "this transaction belongs to the task: leaving the `ctx.transaction()` block commits it, "
    "together with the task's completion, and an exception rolls it back."
)


class LentConnection(sqlite3.Connection):
    """A `sqlite3.Connection` inside a transaction that it cannot end. `row_factory` and functions
    may be set; it is closed after the block.
    """

    def commit(self) -> NoReturn:
        raise HoldfastError(f"commit: {_OURS}")

    def rollback(self) -> NoReturn:
        raise HoldfastError(f"rollback: {_OURS} For a part of it use SAVEPOINT.")

    def executescript(self, script: str, /) -> sqlite3.Cursor:
        if self.in_transaction:
            raise HoldfastError(
                f"executescript would commit what came before; execute one by one: {_OURS}"
            )
        return super().executescript(script)

    def __enter__(self) -> Self:
        raise HoldfastError(f"`with connection:` would commit at its end; leave it out: {_OURS}")


class StatementResult(NamedTuple):
    """What a statement did."""

    rowcount: int
    lastrowid: int | None


class AsyncConnection:
    """A SQLite connection for `async def` handlers.

    Each call runs on the connection's own thread and is awaited, one after the other. Rows come as
    the connection's `row_factory` makes them: tuples, unless `run` sets another.
    """

    def __init__(self, db: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        self._db = db
        self._thread = thread

    async def execute(self, sql: str, parameters: Parameters = (), /) -> StatementResult:
        """Run one statement; what it returns in rows is dropped (see `fetchall`)."""
        return await self.run(lambda db: _changes(db.execute(sql, parameters)))

    async def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> StatementResult:
        """Run one statement for each of the parameters."""
        return await self.run(lambda db: _changes(db.executemany(sql, parameters)))

    async def fetchone(self, sql: str, parameters: Parameters = (), /) -> Any:
        """The first row, or None."""
        return await self.run(lambda db: _first(db.execute(sql, parameters)))

    async def fetchall(self, sql: str, parameters: Parameters = (), /) -> list[Any]:
        """Every row."""
        return await self.run(lambda db: db.execute(sql, parameters).fetchall())

    async def run(self, work: Callable[[sqlite3.Connection], T], /) -> T:
        """Call `work` with the `sqlite3.Connection`, on its thread: for everything else."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._db)


def _changes(cursor: sqlite3.Cursor) -> StatementResult:
    # Rows that nobody fetches would keep the statement open, and with it the commit waiting.
    found = StatementResult(cursor.rowcount, cursor.lastrowid)
    cursor.close()
    return found


def _first(cursor: sqlite3.Cursor) -> Any:
    row = cursor.fetchone()
    cursor.close()
    return row
