"""No queue at all: the least that pick-up on PostgreSQL can be. One durable insert that calls, one
connection that hears the call, one durable claim. Nothing is validated, ordered, kept or checked.

    python -m bench.peers.bare        the worker
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from bench.peers import bodies, driver

TABLES = """
CREATE TABLE ready (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sent double precision);
CREATE TABLE run (id bigint PRIMARY KEY, started_at timestamptz);
CREATE FUNCTION send(sent double precision) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ready (sent) VALUES (send.sent);
    PERFORM pg_notify('bare', '');
END $$;
"""
CLAIM = """
WITH taken AS (DELETE FROM ready RETURNING id, sent),
started AS (INSERT INTO run (id, started_at) SELECT id, clock_timestamp() FROM taken)
SELECT sent FROM taken
"""


class Queue(driver.Driver):
    _connection: Any

    async def install(self) -> None:
        connection = await asyncpg.connect(driver.POSTGRES)
        await connection.execute(TABLES)
        await connection.close()

    async def open(self) -> None:
        self._connection = await asyncpg.connect(driver.POSTGRES)

    async def send(self, sent: float) -> None:
        await self._connection.execute("SELECT send($1)", sent)


async def work() -> None:
    """Claim whatever there is, whenever called."""
    ear, hand = await asyncpg.connect(driver.POSTGRES), await asyncpg.connect(driver.POSTGRES)
    called = asyncio.Event()
    await ear.add_listener("bare", lambda *_: called.set())
    while True:
        for row in await hand.fetch(CLAIM):
            bodies.stamp(row["sent"])
        await called.wait()
        called.clear()


if __name__ == "__main__":
    asyncio.run(work())
