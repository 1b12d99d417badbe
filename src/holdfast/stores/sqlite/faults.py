"""Says what a driver error means. None of them leaves the store as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holdfast.errors import StoreError, StoreUnavailable

_MEANINGS: Final = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Free some space; nothing needs restarting."),
    sqlite3.SQLITE_READONLY: (
        "the database is read-only",
        "Make the file and its folder writable for this user; nothing needs restarting.",
    ),
    sqlite3.SQLITE_BUSY: (
        "another process kept the database locked for more than 10 s",
        "Look for a stopped process or a long transaction (a backup, an open shell) on the file.",
    ),
    sqlite3.SQLITE_LOCKED: (
        "the database is locked",
        "Look for a long transaction on the file.",
    ),
    sqlite3.SQLITE_IOERR: (
        "reading or writing the disk failed",
        "Check the disk, its quota and the mount; nothing needs restarting.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened",
        "Check that the folder exists and that this user may write there.",
    ),
    sqlite3.SQLITE_PERM: ("access is denied", "Give this user access to the file."),
    sqlite3.SQLITE_NOMEM: ("memory is exhausted", "Free memory or lower the payload sizes."),
    sqlite3.SQLITE_PROTOCOL: (
        "the lock on the write-ahead log could not be had",
        "Keep the file on a local disk, not on a network share.",
    ),
}
_BROKEN: Final = {
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is no SQLite database",
}


def explain(error: sqlite3.Error, path: Path) -> Exception:
    """The error to raise instead; the same one if it is a mistake of ours."""
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(code, int):
        return error
    primary = code & 0xFF
    if primary in _MEANINGS:
        what, fix = _MEANINGS[primary]
        return StoreUnavailable(f"{path}: {what} ({error}). Nothing was written. {fix}")
    if primary in _BROKEN:
        return StoreError(
            f"{path} {_BROKEN[primary]} ({error}). Stop all workers, keep a copy of the file with "
            "its -wal, and restore a backup or run `sqlite3 FILE .recover`."
        )
    return error


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Translate what the driver raises inside."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path) from error
