"""The limit of a drain: its row changes as set statements on our own tables, without the product.

No claims come back to Python, nothing is validated, nothing runs, and one connection has the file
to itself. What remains is what SQLite and the disk cost: each batch is one commit for "started" and
one for "completed", with the settings of the product.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Final

from holdfast.stores.sqlite.queries import LIMIT, SCHEMA
from holdfast.stores.sqlite.schema import open_database

BATCH: Final = 500
"""Enough for SQLite to spend its time on rows, not on commits. A busy worker reaches 2000."""


def drain_rate(path: Path, tasks: int, *, batch: int = BATCH) -> float:
    """Tasks per second from the first start to the last completion, on a file made for this."""
    db = open_database(path, create=True)
    try:
        db.execute(LIMIT["lane"])
        db.execute(LIMIT["fill"], {"count": tasks})
        began = time.perf_counter()
        done = 0
        while done < tasks:
            done += _round(db, batch)
        return done / (time.perf_counter() - began)
    finally:
        db.close()


def _round(db: sqlite3.Connection, batch: int) -> int:
    """Start a batch and finish it, each in one durable commit; returns how many."""
    values = {"now": time.time_ns() // 1000, "batch": batch}
    db.execute(SCHEMA["begin_write"])
    db.execute(LIMIT["start"], values)
    db.execute(SCHEMA["commit"])
    db.execute(SCHEMA["begin_write"])
    finished = db.execute(LIMIT["finish"], values).rowcount
    db.execute(LIMIT["count_up"], values)
    db.execute(SCHEMA["commit"])
    return finished
