"""A connection to PostgreSQL for wake-ups: listens, and runs the statements of `postgres.sql`."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from holdfast.errors import ConfigError
from holdfast.logs import EventLog

if TYPE_CHECKING:
    import asyncpg
    import asyncpg.prepared_stmt

    Connection = asyncpg.Connection[asyncpg.Record]
    PreparedStatement = asyncpg.prepared_stmt.PreparedStatement[asyncpg.Record]

log = EventLog(__name__)

PATIENCE: Final = 5.0
"""Seconds for one statement, or for connecting. A server that takes longer is as good as away."""

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_, *_parts = _NAME.split((files(__package__) / "postgres.sql").read_text(encoding="utf-8"))
SQL: Final = {name: body.strip() for name, body in zip(_parts[::2], _parts[1::2], strict=True)}


class Line:
    """The connection itself. One statement at a time; whoever breaks it, it says so once."""

    def __init__(self, dsn: str, schema: str, heard: Callable[[str], None]) -> None:
        self._dsn = dsn
        self._schema = schema
        self._heard = heard
        self._token = ""
        self._connection: Connection | None = None
        self._is_pooled = False
        self._statements: dict[str, PreparedStatement] = {}
        self._turn = asyncio.Lock()
        self._echo = asyncio.Event()
        self.opened = asyncio.Event()
        self.broken = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    async def open(self) -> None:
        """Connect and listen."""
        self.broken.clear()
        self._statements.clear()
        connection = self._connection = await self._connect()
        connection.add_termination_listener(lambda _: self.broken.set())
        pid = await connection.fetchval(SQL["backend"])
        # A pooler invents the number it gives us; only the server itself knows the real one.
        self._is_pooled = pid != connection.get_server_pid()
        await connection.add_listener(self._schema, self._on_notify)
        self.opened.set()

    async def can_hear(self) -> bool:
        """Whether calls reach this connection. Behind a pooler that is found out by calling, from
        another connection while this one is idle.
        """
        if not self._is_pooled:
            return True
        self._echo.clear()
        self._token = f"?{random.getrandbits(64):x}"
        caller = await self._connect()
        try:
            async with caller.transaction():
                await caller.execute(SQL["call"], self._schema, self._token)
            await asyncio.wait_for(self._echo.wait(), 1.0)
        except TimeoutError:
            log.info("dispatch.pooled")
            return False
        finally:
            await caller.close(timeout=PATIENCE)
        return True

    async def ask(self, name: str, *values: object) -> object:
        """Run one of the statements and return its answer. A line that is silent for too long is
        given up.
        """
        statement = SQL[name].replace("holdfast.", f"{quoted(self._schema)}.")
        async with self._turn:
            connection = self._connection
            if connection is None:
                raise ConnectionError("not connected")
            try:
                if self._is_pooled:  # parsing and running might else reach two servers
                    async with connection.transaction():
                        return await connection.fetchval(statement, *values, timeout=PATIENCE)
                return await self._prepared(connection, statement, values)
            except (TimeoutError, OSError):
                self.broken.set()
                raise

    async def _prepared(
        self, connection: Connection, statement: str, values: tuple[object, ...]
    ) -> object:
        """One round trip instead of two, and no planning."""
        known = self._statements.get(statement)
        if known is None:
            known = self._statements[statement] = await connection.prepare(
                statement, timeout=PATIENCE
            )
        try:
            return await known.fetchval(*values, timeout=PATIENCE)
        except Exception:
            # A migration may have replaced the function: prepare it anew next time.
            self._statements.pop(statement, None)
            raise

    def drop(self) -> None:
        """Let go of the connection at once."""
        self.opened.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _connect(self) -> Connection:
        try:
            import asyncpg  # noqa: PLC0415 - only where PostgreSQL is used
        except ImportError:
            raise ConfigError(
                "url", "PostgreSQL needs its driver: pip install 'holdfast[postgres]'"
            ) from None
        return await asyncpg.connect(self._dsn, timeout=PATIENCE, statement_cache_size=0)

    def _on_notify(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        if payload == self._token:
            self._echo.set()
        else:
            self._heard(str(payload))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
