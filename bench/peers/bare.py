"""No queue at all: the least that pick-up on PostgreSQL can be. One durable insert that calls, one
connection that hears the call, one durable claim. Nothing is validated, ordered, kept or checked.
The call is a NOTIFY within the insert, or with a Redis given, a push to a list after it.

    python -m bench.peers.bare        the worker
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from bench.peers import bodies, driver
from bench.resp import Line

TABLES = """
CREATE TABLE ready (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sent double precision);
CREATE TABLE run (id bigint PRIMARY KEY, started_at timestamptz);
CREATE FUNCTION send(sent double precision) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ready (sent) VALUES (send.sent);
    PERFORM pg_notify('bare', '');
END $$;
"""
SEND = "INSERT INTO ready (sent) VALUES ($1)" if driver.REDIS else "SELECT send($1)"
CLAIM = """
WITH taken AS (DELETE FROM ready RETURNING id, sent),
started AS (INSERT INTO run (id, started_at) SELECT id, clock_timestamp() FROM taken)
SELECT sent FROM taken
"""


class Queue(driver.Driver):
    _connection: Any
    _line: Line

    async def install(self) -> None:
        connection = await asyncpg.connect(driver.POSTGRES)
        await connection.execute(TABLES)
        await connection.close()

    async def open(self) -> None:
        self._connection = await asyncpg.connect(driver.POSTGRES)
        if driver.REDIS:
            self._line = await Line.open(driver.REDIS)

    async def send(self, sent: float) -> None:
        await self._connection.execute(SEND, sent)
        if driver.REDIS:
            await self._line.ask("RPUSH", "bare", "")


class Channel:
    """Hears a NOTIFY."""

    async def open(self) -> None:
        self._ear, self._event = await asyncpg.connect(driver.POSTGRES), asyncio.Event()
        await self._ear.add_listener("bare", lambda *_: self._event.set())

    async def called(self) -> None:
        await self._event.wait()
        self._event.clear()


class List:
    """Hears a push."""

    async def open(self) -> None:
        self._line = await Line.open(driver.REDIS)

    async def called(self) -> None:
        await self._line.ask("BLPOP", "bare", 0)


async def work() -> None:
    """Claim whatever there is, whenever called."""
    hand = await asyncpg.connect(driver.POSTGRES)
    ear = List() if driver.REDIS else Channel()
    await ear.open()
    while True:
        for row in await hand.fetch(CLAIM):
            bodies.stamp(row["sent"])
        await ear.called()


if __name__ == "__main__":
    asyncio.run(work())
