"""Opens connections with the settings that the promises rest on."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from holdfast.errors import StoreUnavailable
from holdfast.stores.sqlite.faults import explained
from holdfast.stores.sqlite.queries import SCHEMA

BUSY_TIMEOUT: Final = 10.0

T = TypeVar("T")
FileId = tuple[int, int]


def connect(
    path: Path, *, create: bool = False, kind: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    """A connection that writes. Transactions are begun and ended by hand.

    Only `create` makes a missing file: a store whose file vanished must say so, not start afresh.
    """
    if create:
        _make_private(path)
    with explained(path):
        db = _open(path, "rwc" if create else "rw", kind)
        try:
            # Of two that do this to a new file, SQLite tells one "locked" without waiting.
            patiently(lambda: _use_wal(db, path))
            db.executescript(SCHEMA["settings"])
            db.executescript(SCHEMA["no_waiting"])
        except BaseException:
            db.close()
            raise
    return db


def file_at(path: str | Path) -> FileId | None:
    """Which file is there now. While one is open its number is not given to another."""
    try:
        found = os.stat(path)  # noqa: PTH116 - in every group commit, where a Path takes twice as long
    except OSError:
        return None
    return found.st_dev, found.st_ino


def vanished(path: Path) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} was deleted, moved or replaced while it was open. Nothing was written. Put the "
        "file back, with its -wal if there is one; whatever is there then is used, and nothing "
        "needs restarting. A new start makes a new, empty file."
    )


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


def _open(
    path: Path, mode: str, kind: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
        factory=kind,
    )


def _make_private(path: Path) -> None:
    """Tasks hold what their submitters know: nobody else may read a new file. SQLite gives its -wal
    and -shm the same rights. What is there already, or cannot be made, is left as it is.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def patiently(act: Callable[[], T]) -> T:
    """Do something that other processes may keep us from, for up to `BUSY_TIMEOUT`.

    SQLite's own waiting sleeps longer and longer, up to 100 ms, and so loses to a process that
    comes back at once: measured with four busy writers, one of them waited 1.7 s. Asking every
    millisecond or so gives everybody the same chance.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.0003, 0.0015))  # noqa: S311  # no secret


def _use_wal(db: sqlite3.Connection, path: Path) -> None:
    """Switch to the write-ahead log; the file remembers it."""
    (mode,) = db.execute(SCHEMA["use_wal"]).fetchone()
    if mode != "wal":
        raise StoreUnavailable(
            f"{path}: this file system cannot keep a write-ahead log (mode {mode!r}). "
            "Put the database on a local disk."
        )
