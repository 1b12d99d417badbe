"""A bookshop on PostgreSQL: async handlers write through asyncpg, sync ones through psycopg."""

from __future__ import annotations

from typing import Any, LiteralString
from urllib.parse import urlsplit

import asyncpg
import psycopg
from tests.integration.transactions.bookshops.base import Branch
from tests.kit.servers.proxy import Fate, Proxy

from holdfast import Holdfast

BOOK = "INSERT INTO booking (customer) VALUES ($1)"
COUNT = "SELECT count(*) FROM booking"

_TABLE = (
    "CREATE TABLE IF NOT EXISTS booking"
    " (number int GENERATED ALWAYS AS IDENTITY, customer text NOT NULL)"
)
_EMPTY = """
    DO $$
    DECLARE found regclass;
    BEGIN
        FOR found IN
            SELECT oid FROM pg_class
            WHERE relnamespace IN (to_regnamespace('holdfast'), to_regnamespace('public'))
            AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'migration'
        LOOP
            EXECUTE format('DELETE FROM %s', found);
        END LOOP;
    END $$
"""
Sync = psycopg.Connection[tuple[Any, ...]]


class PostgresBookshop(Branch):
    connections = (asyncpg.Connection, psycopg.Connection)
    endings = (
        lambda conn: conn.commit(),
        lambda conn: conn.rollback(),
        lambda conn: conn.__enter__(),
    )
    commit = "^commit"
    completion = "complete_within"
    lock = None  # or there would be the COMMIT of the question who is next
    advice = "savepoint"

    def clear(self) -> None:
        """Make the database as new. Deleting is much quicker than making another one."""
        self.tell(_EMPTY)

    def furnish(self) -> None:
        self.tell(_TABLE)

    async def book(self, connection: Any, customer: str) -> None:
        await connection.execute(BOOK, customer)

    def book_sync(self, connection: Sync, customer: str) -> None:
        connection.execute("INSERT INTO booking (customer) VALUES (%s)", (customer,))

    async def count(self, connection: Any) -> int:
        return int(await connection.fetchval(COUNT))

    def count_sync(self, connection: Sync) -> int:
        (number,) = connection.execute(COUNT).fetchone() or (0,)
        return int(number)

    async def end(self, connection: Any) -> None:
        await connection.execute("COMMIT")

    def bookings(self) -> list[str]:
        with psycopg.connect(self.url, autocommit=True) as db:
            found = db.execute("SELECT customer FROM booking ORDER BY number")
            return [name for (name,) in found]

    def tell(self, statement: LiteralString) -> None:
        """Run this on a connection of somebody who knows nothing of tasks."""
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute(statement)

    def proxy(self) -> Proxy:
        return Proxy(urlsplit(self.url).port or 0)

    def through(self, proxy: Proxy) -> Holdfast:
        port = urlsplit(self.url).port
        return self.app(self.url.replace(f":{port}/", f":{proxy.port}/"))

    def attempts_after(self, fate: Fate) -> int:
        return 2 if fate is Fate.LOSE_REQUEST else 1

    async def stumble(self, connection: Any) -> None:
        await self.book(connection, "ada")
        try:
            await connection.execute(BOOK, None)
        except asyncpg.NotNullViolationError:
            return
        raise AssertionError("a booking of nobody was taken")
