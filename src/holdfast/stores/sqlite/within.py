"""Adds tasks inside a transaction of the caller, on the caller's own connection to the file.

The statements are those of `add`, so the promises are the same. Two things are the caller's: the
commit, with the durability that their connection is set to (`synchronous`), and the wake-up, which
nobody can give for them: workers find the tasks at their next poll.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holdfast.borrowed import borrow, borrow_async
from holdfast.core.task import Added, NewTask
from holdfast.errors import InvalidOption
from holdfast.ports.clock import Clock
from holdfast.stores.sqlite.add import add as add_tasks
from holdfast.stores.sqlite.faults import explained
from holdfast.stores.sqlite.lanes import Lanes
from holdfast.stores.sqlite.lent import AsyncConnection
from holdfast.stores.sqlite.queries import SCHEMA, TRANSACTIONS
from holdfast.stores.sqlite.writer import Unit

_MAIN: Final = "main"


def add(
    path: Path, clock: Clock, connection: object, tasks: Sequence[NewTask], *, window: float
) -> Sequence[Added]:
    """Add tasks through a sync connection: sqlite3's, or one that stands on it."""
    if isinstance(connection, AsyncConnection):
        raise InvalidOption(
            "connection", "await submit_async() inside an async handler. Nothing was submitted."
        )
    driver = borrow(connection).driver()
    if not isinstance(driver, sqlite3.Connection):
        raise _elsewhere(path, f"a {type(driver).__module__} connection")
    return _add(driver, path, clock, tasks, window)


async def add_async(
    path: Path, clock: Clock, connection: object, tasks: Sequence[NewTask], *, window: float
) -> Sequence[Added]:
    """Add tasks through the connection of an async handler's `ctx.transaction()`."""
    if not isinstance(connection, AsyncConnection):
        borrow_async(connection)
        raise _elsewhere(path, f"a {type(connection).__module__} connection")
    return await connection.run(lambda db: _add(db, path, clock, tasks, window))


def _add(
    db: sqlite3.Connection, path: Path, clock: Clock, tasks: Sequence[NewTask], window: float
) -> Sequence[Added]:
    with explained(path), _plain(db):
        _check_place(db, path)
        if not db.in_transaction and db.isolation_level is not None:
            # What the driver itself would do before the first INSERT; the caller commits.
            db.execute(SCHEMA["begin_write"])
        db.execute(TRANSACTIONS["savepoint"])
        try:
            # Lanes of its own: those it makes are gone if the caller rolls back.
            unit = Unit(db, Lanes(), clock)
            added = add_tasks(unit, tasks, idempotency_window=window)
            unit.tally.write(db)
        except BaseException:
            if db.in_transaction:
                db.execute(TRANSACTIONS["back_to_savepoint"])
                db.execute(TRANSACTIONS["release_savepoint"])
            raise
        db.execute(TRANSACTIONS["release_savepoint"])
        return added


@contextmanager
def _plain(db: sqlite3.Connection) -> Iterator[None]:
    """Rows as tuples and text as text, whatever the caller has set."""
    kept = db.row_factory, db.text_factory
    db.row_factory, db.text_factory = None, str
    try:
        yield
    finally:
        db.row_factory, db.text_factory = kept


def _check_place(db: sqlite3.Connection, path: Path) -> None:
    files = {name: file for _, name, file in db.execute(TRANSACTIONS["files"])}
    file = files.get(_MAIN)
    if not file or not path.exists() or not path.samefile(file):
        raise _elsewhere(path, f"a connection to {file or 'a database in memory'}")


def _elsewhere(path: Path, what: str) -> InvalidOption:
    return InvalidOption(
        "connection",
        f"expected a sqlite3 connection to {path}, where this app keeps its tasks, got {what}. "
        "Nothing was submitted.",
    )
