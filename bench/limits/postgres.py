"""What PostgreSQL could do at most: a drain's row changes as set statements, without the product.

Twice, because the two answer different questions. `within`: nothing leaves the server, which has
the whole machine to itself; no queue can reach that. `between`: the rows go to a Python process and
the results come back, and nothing is done with either; server and process share the machine, as
they do for every queue. Both commit each batch twice, "started" and "completed", as a worker does.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import asyncpg

from bench.blocks import blocks
from bench.environments import ROOT, Unavailable

BATCH = 1000
WORKER = 1

SQL = blocks(Path(__file__).with_suffix(".sql"))


async def _connect(url: str) -> Any:
    connection = await asyncpg.connect(url)
    # Ids stay the bytes they are: making a UUID object of each is no part of a limit.
    await connection.set_type_codec(
        "uuid", encoder=bytes, decoder=bytes, schema="pg_catalog", format="binary"
    )
    await connection.execute(SQL["pin_plans"])
    return connection


async def fill(url: str, tasks: int) -> None:
    """Make the tables in an empty database, with so many tasks ready."""
    connection = await _connect(url)
    await connection.execute(SQL["tables"])
    await connection.execute(SQL["drain_within"])
    await connection.execute(SQL["fill"], tasks)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


def within(url: str, tasks: int, *, sessions: int, batch: int = BATCH) -> float:
    """Tasks per second inside the server."""

    async def work() -> float:
        await fill(url, tasks)
        connections = [await _connect(url) for _ in range(sessions)]
        began = time.perf_counter()
        await asyncio.gather(
            *(
                connection.execute(f"CALL raw.drain({batch}, {number})")
                for number, connection in enumerate(connections)
            )
        )
        seconds = time.perf_counter() - began
        await _check(connections[0], tasks)
        return tasks / seconds

    return asyncio.run(work())


def between(url: str, tasks: int, *, processes: int, batch: int = BATCH) -> float:
    """Tasks per second with rows going to Python processes and results coming back."""
    asyncio.run(fill(url, tasks))
    command = [sys.executable, "-m", "bench.limits.postgres", url, str(batch)]
    clients = [
        subprocess.Popen([*command, str(number)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for number in range(processes)
    ]
    spans = [client.communicate()[0].split() for client in clients]
    if any(len(span) != 2 for span in spans):
        raise Unavailable("a client of the raw limit ended early")
    began, ended = min(float(s[0]) for s in spans), max(float(s[1]) for s in spans)
    asyncio.run(_check_all(url, tasks))
    return tasks / (ended - began)


async def client(url: str, batch: int, worker: int) -> None:
    """Claim and settle on two connections until nothing is left; prints when it began and ended."""
    connections = [await _connect(url) for _ in range(2)]
    for connection in connections:
        await connection.fetch(SQL["claim"], 0, worker)  # planned before the clock starts
    began = time.time()
    await asyncio.gather(*(_loop(connection, batch, worker) for connection in connections))
    print(began, time.time())


async def _loop(connection: Any, batch: int, worker: int) -> None:
    claim = await connection.prepare(SQL["claim"])
    settle = await connection.prepare(SQL["settle"])
    while rows := await claim.fetch(batch, worker):
        ids, attempts = [row[0] for row in rows], [row[1] for row in rows]
        await settle.fetch(ids, attempts, [b"1"] * len(rows), worker)


async def _check_all(url: str, tasks: int) -> None:
    connection = await _connect(url)
    await _check(connection, tasks)
    await connection.close()


async def _check(connection: Any, tasks: int) -> None:
    done = await connection.fetchval("SELECT count(*) FROM raw.done")
    if done != tasks:
        raise Unavailable(f"the raw limit finished {done} of {tasks} tasks")


if __name__ == "__main__":
    asyncio.run(client(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
