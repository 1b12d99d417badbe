"""A connection to PostgreSQL for wake-ups: listens, and runs the statements of `postgres.sql`."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Self

from holdfast.dispatch.sleeper_thread import PATIENCE
from holdfast.errors import ConfigError
from holdfast.logs import EventLog

if TYPE_CHECKING:
    import asyncpg

    Driver = asyncpg.Connection[asyncpg.Record]

log = EventLog(__name__)

ECHO: Final = 1.0
"""Seconds in which a connection that can hear at all has heard itself called."""

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_, *_parts = _NAME.split((files(__package__) / "postgres.sql").read_text(encoding="utf-8"))
SQL: Final = {name: body.strip() for name, body in zip(_parts[::2], _parts[1::2], strict=True)}


class PostgresConnection:
    """One statement at a time. Open until it is `lost`, which says why.

    Attributes:
        can_hear: Whether calls reach it. Through a pooler that keeps no sessions none do.
    """

    def __init__(self, driver: Driver, schema: str, heard: Callable[[str], None]) -> None:
        self._driver = driver
        self._schema = schema
        self._heard = heard
        self._is_pooled = False
        self._turn = asyncio.Lock()
        self._token = f"?{random.getrandbits(64):x}"
        self._echo = asyncio.Event()
        self.can_hear = True
        self.lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, dsn: str, schema: str, heard: Callable[[str], None]) -> Self:
        """Connect and listen."""
        connection = cls(await connect(dsn), schema, heard)
        try:
            await connection._listen(dsn)
        except BaseException as error:
            connection.drop(ConnectionError(str(error)))
            raise
        return connection

    async def ask(self, name: str, *values: object) -> object:
        """Run one of the statements and return its answer. A connection that is silent for too long
        is given up.
        """
        statement = in_schema(SQL[name], self._schema)
        async with self._turn:
            try:
                if self._is_pooled:  # parsing and running might else reach two servers
                    async with self._driver.transaction():
                        return await self._driver.fetchval(statement, *values, timeout=PATIENCE)
                return await self._driver.fetchval(statement, *values, timeout=PATIENCE)
            except (TimeoutError, OSError) as error:
                self.drop(error)
                raise

    def drop(self, why: Exception) -> None:
        """Let go of it at once."""
        if not self.lost.done():
            self.lost.set_result(why)
            self._driver.terminate()

    async def _listen(self, dsn: str) -> None:
        driver = self._driver
        driver.add_termination_listener(
            lambda _: self.drop(ConnectionError("the connection was closed by the server"))
        )
        pid = await driver.fetchval(SQL["backend"])
        # A pooler invents the number it gives us; only the server itself knows the real one.
        self._is_pooled = pid != driver.get_server_pid()
        await driver.add_listener(self._schema, self._on_notify)
        if self._is_pooled:
            self.can_hear = await self._hears_itself(dsn)

    async def _hears_itself(self, dsn: str) -> bool:
        """Called from another connection, while this one is idle."""
        caller = await connect(dsn)
        try:
            async with caller.transaction():
                await caller.execute(SQL["call"], self._schema, self._token)
            await asyncio.wait_for(self._echo.wait(), ECHO)
        except TimeoutError:
            log.info("dispatch.pooled")
            return False
        finally:
            await caller.close(timeout=PATIENCE)
        return True

    def _on_notify(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        if payload == self._token:
            self._echo.set()
        else:
            self._heard(str(payload))


async def connect(dsn: str) -> Driver:
    """A connection that needs no session. ConfigError: the driver is missing."""
    try:
        import asyncpg  # noqa: PLC0415 - only where PostgreSQL is used
    except ImportError:
        raise ConfigError(
            "url", "PostgreSQL needs its driver: pip install 'holdfast[postgres]'"
        ) from None
    return await asyncpg.connect(dsn, timeout=PATIENCE, statement_cache_size=0)


def in_schema(statement: str, schema: str) -> str:
    quoted = '"' + schema.replace('"', '""') + '"'
    return statement.replace("holdfast.", f"{quoted}.")
