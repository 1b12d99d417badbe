"""Keeps the database's shape: numbered migrations, each applied once, by one process, and after
them all routines anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.errors import SchemaMismatch, StoreError
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries

_OLDEST: Final = 140000


def expected_version(sql: Queries) -> int:
    return max(migration.version for migration in sql.migrations)


async def found_version(db: Connection, sql: Queries) -> int:
    """The version of the schema; 0 if there is none."""
    found = await db.fetchval(sql["version"])
    if found <= 0:
        return 0
    return int(await db.fetchval(sql["migrations_applied"]))


async def open_schema(db: Connection, sql: Queries, where: str) -> None:
    """An absent schema is made, one of another version is refused."""
    there = await db.fetchval(sql["version"])
    if there == 0:
        await migrate(db, sql, where)
    if there < 0:
        raise StoreError(
            f"{where}: schema {sql.schema} holds other tables but none of Holdfast's. Give Holdfast"
            " a schema of its own (?schema=… in the URL)."
        )
    found = await found_version(db, sql)
    if found != expected_version(sql):
        raise SchemaMismatch(found=found, expected=expected_version(sql), where=where)


async def migrate(db: Connection, sql: Queries, where: str) -> Sequence[int]:
    """Apply what is missing, in one transaction; returns the versions applied.

    The version is read again under a lock: of many processes that try, one does it.
    """
    version = await db.fetchval(sql["server_version"])
    if version < _OLDEST:
        raise StoreError(
            f"{where} is PostgreSQL {version // 10000}; Holdfast needs {_OLDEST // 10000} or later."
        )
    async with db.transaction():
        await db.execute(sql["search_path"])
        await db.execute(sql["hold"])
        found = await found_version(db, sql)
        if found > expected_version(sql):
            raise SchemaMismatch(found=found, expected=expected_version(sql), where=where)
        missing = [migration for migration in sql.migrations if migration.version > found]
        if missing:
            await db.execute(sql["create"])
        for migration in missing:
            await db.execute(migration.sql, timeout=3600)
            await db.execute(sql["applied"], migration.version)
        if missing:
            await db.execute(sql.routines)
            await db.execute(sql["add_partitions"])
    return [migration.version for migration in missing]


def script(sql: Queries) -> str:
    """All of it, for a person to read or to run in `psql`."""
    parts = ["BEGIN;", f"{sql['search_path']};", f"{sql['create']};"]
    for migration in sql.migrations:
        applied = sql["applied"].replace("$1::integer", str(migration.version))
        parts += [migration.sql.strip(), f"{applied};"]
    parts += [sql.routines.strip(), f"{sql['add_partitions']};", "COMMIT;"]
    return "\n\n".join(parts) + "\n"
