"""Opens connections with the settings that the promises rest on."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Final

from holdfast.errors import StoreUnavailable
from holdfast.stores.sqlite.faults import explained
from holdfast.stores.sqlite.queries import SCHEMA

BUSY_TIMEOUT: Final = 10.0


def connect(path: Path, *, create: bool = False) -> sqlite3.Connection:
    """A connection that writes. Transactions are begun and ended by hand.

    Only `create` makes a missing file: a store whose file vanished must say so, not start afresh.
    """
    with explained(path):
        db = _open(path, "rwc" if create else "rw")
        try:
            _use_wal(db, path)
            db.executescript(SCHEMA["settings"])
        except BaseException:
            db.close()
            raise
    return db


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, for an existing database."""
    with explained(path):
        db = _open(path, "rw")
        try:
            db.executescript(SCHEMA["settings"])
            db.executescript(SCHEMA["read_only"])
        except BaseException:
            db.close()
            raise
    db.row_factory = sqlite3.Row
    return db


def _open(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )


def _use_wal(db: sqlite3.Connection, path: Path) -> None:
    """Switch to the write-ahead log; the file remembers it.

    Of two processes that do this to a new file at once, SQLite tells one "locked" without waiting.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            (mode,) = db.execute(SCHEMA["use_wal"]).fetchone()
            break
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise StoreUnavailable(
            f"{path}: this file system cannot keep a write-ahead log (mode {mode!r}). "
            "Put the database on a local disk."
        )
