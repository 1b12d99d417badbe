"""One small class per library: run a statement, or show the driver's own connection.

Statements are written with `$1, $2 …` (PostgreSQL's own way) and rewritten for drivers that expect
`%s`. None of this begins, commits or rolls back: the transaction is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final, Protocol

from holdfast.errors import InvalidOption

Rows = Sequence[Sequence[Any]]

_NUMBERED: Final = re.compile(r"\$(\d+)")


class Borrowed(Protocol):
    """A connection for sync code."""

    def fetch(self, sql: str, values: Sequence[Any]) -> Rows:
        """Run a statement and return its rows."""
        ...

    def driver(self) -> object:
        """The connection of the database driver underneath."""
        ...

    def dialect(self) -> str:
        """What it speaks: `postgresql`, `sqlite` …"""
        ...


class BorrowedAsync(Protocol):
    """A connection for async code."""

    async def fetch(self, sql: str, values: Sequence[Any]) -> Rows: ...

    def dialect(self) -> str: ...


class _Plain:
    """A DB-API connection: sqlite3, psycopg2."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def fetch(self, sql: str, values: Sequence[Any]) -> Rows:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(*formatted(sql, values))
            rows: Rows = cursor.fetchall()
            return rows

    def driver(self) -> object:
        return self._connection

    def dialect(self) -> str:
        return "postgresql" if hasattr(self._connection, "pgconn_ptr") else "sqlite"


class _Psycopg:
    """`psycopg.Connection`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def fetch(self, sql: str, values: Sequence[Any]) -> Rows:
        with self._connection.cursor(row_factory=_tuple_row()) as cursor:
            cursor.execute(*formatted(sql, values))
            rows: Rows = cursor.fetchall()
            return rows

    def driver(self) -> object:
        return self._connection

    def dialect(self) -> str:
        return "postgresql"


class _Django:
    """`django.db.connection`, or one of `django.db.connections`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def fetch(self, sql: str, values: Sequence[Any]) -> Rows:
        with self._connection.cursor() as cursor:
            cursor.execute(*formatted(sql, values))
            rows: Rows = cursor.fetchall()
            return rows

    def driver(self) -> object:
        self._connection.ensure_connection()
        driver: object = self._connection.connection
        return driver

    def dialect(self) -> str:
        return str(self._connection.vendor)


class _Alchemy:
    """SQLAlchemy's `Connection`, `Session` or `scoped_session`."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def fetch(self, sql: str, values: Sequence[Any]) -> Rows:
        connection = self._connected()
        answer = connection.exec_driver_sql(*_in_style(connection.dialect, sql, values))
        rows: Rows = answer.fetchall()
        return rows

    def driver(self) -> object:
        driver: object = self._connected().connection.driver_connection
        return driver

    def dialect(self) -> str:
        return str(self._connected().dialect.name)

    def _connected(self) -> Any:
        # A session has the method `connection`, a connection the property of that name.
        is_session = callable(getattr(type(self._given), "connection", None))
        return self._given.connection() if is_session else self._given


class _Asyncpg:
    """An asyncpg connection, from a pool or not."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, sql: str, values: Sequence[Any]) -> Rows:
        return [tuple(row) for row in await self._connection.fetch(sql, *values)]

    def dialect(self) -> str:
        return "postgresql"


class _PsycopgAsync:
    """`psycopg.AsyncConnection`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, sql: str, values: Sequence[Any]) -> Rows:
        async with self._connection.cursor(row_factory=_tuple_row()) as cursor:
            await cursor.execute(*formatted(sql, values))
            rows: Rows = await cursor.fetchall()
            return rows

    def dialect(self) -> str:
        return "postgresql"


class _AlchemyAsync:
    """SQLAlchemy's `AsyncConnection` or `AsyncSession`."""

    def __init__(self, given: Any) -> None:
        self._given = given

    async def fetch(self, sql: str, values: Sequence[Any]) -> Rows:
        connection = await self._connected()
        answer = await connection.exec_driver_sql(*_in_style(connection.dialect, sql, values))
        rows: Rows = answer.fetchall()
        return rows

    def dialect(self) -> str:
        is_session = callable(getattr(type(self._given), "connection", None))
        bound = self._given.get_bind() if is_session else self._given
        return str(bound.dialect.name)

    async def _connected(self) -> Any:
        is_session = callable(getattr(type(self._given), "connection", None))
        return await self._given.connection() if is_session else self._given


_SYNC: Final[Mapping[str, type[Borrowed]]] = {
    "sqlite3.Connection": _Plain,
    "psycopg.Connection": _Psycopg,
    "psycopg2.extensions.connection": _Plain,
    "sqlalchemy.engine.base.Connection": _Alchemy,
    "sqlalchemy.orm.session.Session": _Alchemy,
    "sqlalchemy.orm.scoping.scoped_session": _Alchemy,
    "django.utils.connection.ConnectionProxy": _Django,
    "django.db.backends.base.base.BaseDatabaseWrapper": _Django,
}
_ASYNC: Final[Mapping[str, type[BorrowedAsync]]] = {
    "asyncpg.connection.Connection": _Asyncpg,
    "asyncpg.pool.PoolConnectionProxy": _Asyncpg,
    "psycopg.AsyncConnection": _PsycopgAsync,
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": _AlchemyAsync,
    "sqlalchemy.ext.asyncio.session.AsyncSession": _AlchemyAsync,
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": _AlchemyAsync,
}


def borrow(connection: object) -> Borrowed:
    """A connection given to a sync submit."""
    for name in _names(connection):
        if name in _SYNC:
            return _SYNC[name](connection)  # type: ignore[call-arg] # a protocol has no constructor
        if name in _ASYNC:
            raise InvalidOption(
                "connection",
                f"{name} is asynchronous; await submit_async() or submit_many_async() instead. "
                "Nothing was submitted.",
            )
    raise _unknown(connection)


def borrow_async(connection: object) -> BorrowedAsync:
    """A connection given to an async submit."""
    for name in _names(connection):
        if name in _ASYNC:
            return _ASYNC[name](connection)  # type: ignore[call-arg] # a protocol has no constructor
        if name in _SYNC:
            raise InvalidOption(
                "connection",
                f"{name} is synchronous and would hold up the event loop; call submit() or "
                "submit_many() instead. Nothing was submitted.",
            )
    raise _unknown(connection)


def _names(connection: object) -> list[str]:
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in type(connection).__mro__]


def _unknown(connection: object) -> InvalidOption:
    return InvalidOption(
        "connection",
        f"a {_names(connection)[0]} is not a connection Holdfast can submit through. Expected one "
        "of asyncpg, psycopg 3, SQLAlchemy 2 (connection or session), Django or sqlite3. Nothing "
        "was submitted.",
    )


def formatted(sql: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """The statement with `%s`, and a value for each of them."""
    order = [int(number) - 1 for number in _NUMBERED.findall(sql)]
    return _NUMBERED.sub("%s", sql.replace("%", "%%")), [values[index] for index in order]


def _in_style(dialect: Any, sql: str, values: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """The statement as the driver below SQLAlchemy expects it."""
    if dialect.paramstyle == "numeric_dollar":
        return sql, tuple(values)
    text, ordered = formatted(sql, values)
    return text, tuple(ordered)


def _tuple_row() -> Any:
    """psycopg 3's maker of plain tuples, whatever the connection is set to."""
    from psycopg.rows import tuple_row  # noqa: PLC0415 - imported by whoever made the connection

    return tuple_row
