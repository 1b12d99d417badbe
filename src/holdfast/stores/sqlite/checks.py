"""Looks for what should not be: the questions behind `holdfast doctor`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from holdfast.stores.sqlite.queries import CHECKS


def problems(db: sqlite3.Connection) -> list[str]:
    """Everything found, as sentences. Walks the whole file."""
    return [*_file(db), *_places(db), *_locks(db), *_counts(db), *_leftovers(db)]


def risky_settings(db: sqlite3.Connection) -> list[str]:
    """What is wrong with the settings of the connection that writes."""
    (mode,) = db.execute(CHECKS["journal_mode"]).fetchone()
    (synchronous,) = db.execute(CHECKS["synchronous"]).fetchone()
    found = []
    if mode != "wal":
        found.append(f"journal_mode is {mode}, not wal: readers and the writer block each other")
    if synchronous < 2:
        found.append(f"synchronous is {synchronous}, not 2: a power cut may lose what was promised")
    return found


def _file(db: sqlite3.Connection) -> Iterator[str]:
    for (line,) in db.execute(CHECKS["quick_check"]):
        if line != "ok":
            yield f"the file is damaged: {line}"


def _places(db: sqlite3.Connection) -> Iterator[str]:
    for task_id, place, state in db.execute(CHECKS["places"]):
        yield f"task {task_id} is {state} in place {place}, and its other columns disagree"


def _locks(db: sqlite3.Connection) -> Iterator[str]:
    for task_id, key in db.execute(CHECKS["idle_locks"]):
        yield f"task {task_id} waits for lock {key!r}, which should be its own"


def _counts(db: sqlite3.Connection) -> Iterator[str]:
    told = {(kind, key): number for kind, key, number in db.execute(CHECKS["told_counts"])}
    real = {(kind, key): number for kind, key, number in db.execute(CHECKS["real_counts"])}
    for kind, key in sorted(told.keys() | real.keys()):
        said, found = told.get((kind, key), 0), real.get((kind, key), 0)
        if said != found:
            yield f"the tally says {said} for {kind} {key}, but there are {found}"


def _leftovers(db: sqlite3.Connection) -> Iterator[str]:
    for (task_id,) in db.execute(CHECKS["lost_lanes"]):
        yield f"task {task_id} is in a lane that does not exist"
    for (seq,) in db.execute(CHECKS["lost_history"]):
        yield f"there is history of task number {seq}, which does not exist"
    for (seq,) in db.execute(CHECKS["lost_callbacks"]):
        yield f"a callback is owed for task number {seq}, which has not ended or wants none"
    for (key,) in db.execute(CHECKS["lost_keys"]):
        yield f"idempotency key {key!r} names a task that does not exist"
