"""The limit of a drain: its row changes as statements on our own tables, without the product.

It all happens inside the server: no task comes to Python, nothing is validated, nothing runs. Two
sessions share the work, each batch one commit for "started" and one for "completed".
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final
from urllib.parse import urlsplit

from holdfast.stores.postgres.address import parse
from holdfast.stores.postgres.connections import Connection, Connections, connect
from holdfast.stores.postgres.queries import Queries, queries
from holdfast.stores.postgres.store import PostgresStore

SESSIONS: Final = 2


def drain_rate(url: str, tasks: int, *, sessions: int = SESSIONS) -> float:
    """Tasks per second from the first start to the last completion, in a schema made for this."""
    return asyncio.run(_drain_rate(url, tasks, sessions))


@contextmanager
def scratch_schema(url: str) -> Iterator[str]:
    """A URL like this one whose schema is new; it is dropped afterwards."""
    address = parse(url)._replace(schema=f"holdfast_scratch_{secrets.token_hex(4)}")
    ours = f"schema={address.schema}" + ("&pgbouncer=true" if address.pgbouncer else "")
    try:
        yield address.dsn + ("&" if urlsplit(address.dsn).query else "?") + ours
    finally:
        sql = queries(address.schema)
        asyncio.run(_drop(Connections(address), sql["limit_drop"]))


async def _drain_rate(url: str, tasks: int, sessions: int) -> float:
    async with PostgresStore(url):
        pass
    address = parse(url)
    sql = queries(address.schema)
    async with AsyncExitStack() as stack:
        databases = [await connect(address) for _ in range(sessions)]
        for db in databases:
            stack.push_async_callback(db.close)
            await db.execute(sql["limit_pin"])
        await databases[0].execute(sql["limit_fill"], await _lane(databases[0], sql), tasks)
        await databases[0].execute(sql["limit_vacuum"])
        began = time.perf_counter()
        await asyncio.gather(*(db.execute(sql["limit_drain"]) for db in databases))
        return tasks / (time.perf_counter() - began)


async def _lane(db: Connection, sql: Queries) -> int:
    return int(await db.fetchval(sql["limit_lane"]))


async def _drop(connections: Connections, statement: str) -> None:
    try:
        await connections.do(lambda db: db.execute(statement))
    finally:
        await connections.close()
