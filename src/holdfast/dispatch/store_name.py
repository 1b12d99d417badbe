"""What a store is called among all that share a Redis. Wrongly the same, two stores wake each
other's workers; wrongly different, nobody is woken: either costs latency only.

A URL will not do: one process says `localhost`, another the name of the host, a third goes through
a pooler. So the store itself is asked, where it knows something that no other does.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from holdfast.dispatch.postgres.connection import SQL, connect, in_schema
from holdfast.dispatch.sleeper_thread import PATIENCE


async def of_postgres(dsn: str, schema: str) -> str:
    """One schema of one database; asked of the server."""
    connection = await connect(dsn)
    try:
        statement = in_schema(SQL["identity"], schema)
        return _short(str(await connection.fetchval(statement, schema, timeout=PATIENCE)))
    finally:
        connection.terminate()


async def of_file(path: Path) -> str:
    """A file on this host, however it is reached."""
    real = os.path.realpath(path)  # noqa: ASYNC240 - once, on a loop with nothing else to do
    return _short(f"{socket.gethostname()}:{real}")


async def of_mongo(url: str) -> str:
    """A database by its name. Two servers that have one of the same name need a `prefix`."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    database = parts.path.strip("/") or "holdfast"
    return _short(f"{database}/{options.get('schema', 'holdfast')}")


async def of_this_process() -> str:
    """A store in memory is nobody else's."""
    return secrets.token_hex(8)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
