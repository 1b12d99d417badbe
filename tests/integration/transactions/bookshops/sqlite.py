"""A bookshop in a file."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.integration.transactions.bookshops.base import Bookshop

from holdfast.stores.sqlite.lent import AsyncConnection

BOOK = "INSERT INTO booking VALUES (?)"
COUNT = "SELECT count(*) FROM booking"


class SQLiteBookshop(Bookshop):
    connections = (AsyncConnection, sqlite3.Connection)
    endings = (
        lambda conn: conn.commit(),
        lambda conn: conn.rollback(),
        lambda conn: conn.executescript("SELECT 1"),
        lambda conn: conn.__enter__(),
    )
    admits_others = False

    def furnish(self) -> None:
        with closing(self.visit()) as db:
            db.execute("CREATE TABLE booking (customer TEXT NOT NULL)")

    async def book(self, connection: AsyncConnection, customer: str) -> None:
        await connection.execute(BOOK, (customer,))

    def book_sync(self, connection: sqlite3.Connection, customer: str) -> None:
        connection.execute(BOOK, (customer,))

    async def count(self, connection: AsyncConnection) -> int:
        (number,) = await connection.fetchone(COUNT)
        return int(number)

    def count_sync(self, connection: sqlite3.Connection) -> int:
        (number,) = connection.execute(COUNT).fetchone()
        return int(number)

    async def end(self, connection: AsyncConnection) -> None:
        await connection.execute("COMMIT")

    def bookings(self) -> list[str]:
        with closing(self.visit()) as db:
            return [name for (name,) in db.execute("SELECT customer FROM booking ORDER BY rowid")]

    def visit(self) -> sqlite3.Connection:
        """A connection of somebody who knows nothing of tasks."""
        return sqlite3.connect(self.url.removeprefix("sqlite:///"))
