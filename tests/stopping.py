"""Stops processes where they stand, but never in the middle of a write.

Whoever is stopped while it writes to SQLite keeps the file's lock for as long, and everybody waits:
that is so, and not what these tests are about.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path


def stop_between_writes(pids: Sequence[int], database: Path, *, within: float = 20.0) -> None:
    """SIGSTOP for all of them, at a moment when none of them holds the database's lock."""
    deadline = time.monotonic() + within
    while True:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        if _is_free(database):
            return
        assert time.monotonic() < deadline, "somebody writes all the time"
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.02)


def _is_free(database: Path) -> bool:
    with closing(sqlite3.connect(database, timeout=0.5, isolation_level=None)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        db.execute("ROLLBACK")
        return True
