"""Keeps the database's shape: numbered migrations, each applied once, by one process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from holdfast.errors import SchemaMismatch, StoreError
from holdfast.stores.sqlite.connection import connect, patiently
from holdfast.stores.sqlite.faults import explained
from holdfast.stores.sqlite.queries import CHECKS, SCHEMA

_OLDEST: Final = (3, 38, 0)
"""The first with STRICT tables, RETURNING and the `->>` operator."""


@cache
def migrations() -> dict[int, str]:
    """Every migration by its number. Each sets `user_version` to that number as its last act."""
    folder = files(__package__) / "migrations"
    scripts = (entry for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return {int(entry.name[:4]): entry.read_text(encoding="utf-8") for entry in scripts}


def expected_version() -> int:
    return max(migrations())


@cache
def expected_indexes() -> Mapping[str, str]:
    """The indexes of a new file, and the statements that make them."""
    db = sqlite3.connect(":memory:")
    try:
        for _, script in sorted(migrations().items()):
            db.executescript(script)
        return dict(db.execute(CHECKS["indexes"]).fetchall())
    finally:
        db.close()


def found_version(db: sqlite3.Connection) -> int:
    """The version of the file; 0 for an empty one."""
    (version,) = db.execute(SCHEMA["version"]).fetchone()
    return int(version)


def open_database(path: Path, *, create: bool = False) -> sqlite3.Connection:
    """Connect for writing. An empty file gets its schema, one of another version is refused."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise StoreError(
            f"this Python has SQLite {sqlite3.sqlite_version}; Holdfast needs "
            f"{'.'.join(map(str, _OLDEST))} or later. Use a newer Python build."
        )
    with explained(path):
        db = connect(path, create=create)
        try:
            patiently(lambda: _set_up(db, path))
        except BaseException:
            db.close()
            raise
    return db


def migrate(db: sqlite3.Connection, path: Path) -> Sequence[int]:
    """Apply what is missing, in one transaction; returns the versions applied.

    The version is read again under the write lock: of many processes that try, one does it.
    """
    patiently(lambda: db.execute(SCHEMA["begin_alone"]))
    try:
        found = found_version(db)
        if found > expected_version():
            raise SchemaMismatch(found=found, expected=expected_version(), where=str(path))
        missing = sorted(number for number in migrations() if number > found)
        for number in missing:
            for statement in _statements(migrations()[number]):
                db.execute(statement)
        db.execute(SCHEMA["commit"])
    except BaseException:
        if db.in_transaction:
            db.execute(SCHEMA["rollback"])
        raise
    return missing


def _set_up(db: sqlite3.Connection, path: Path) -> None:
    if found_version(db) == 0 and not _tables(db):
        migrate(db, path)
    found = found_version(db)
    if found == 0:
        raise StoreError(
            f"{path} holds other tables ({', '.join(_tables(db)[:5])}) but none of Holdfast's. "
            "Give Holdfast a file of its own, or add its tables with `holdfast migrate`."
        )
    if found != expected_version():
        raise SchemaMismatch(found=found, expected=expected_version(), where=str(path))


def _tables(db: sqlite3.Connection) -> list[str]:
    return [name for (name,) in db.execute(SCHEMA["table_names"]).fetchall()]


def _statements(script: str) -> Iterator[str]:
    """One by one: `executescript` would commit first and leave the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
