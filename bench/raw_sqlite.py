"""The limit: the row changes of a drain as set statements on the product's tables, without it.

No claims come back to Python, nothing is validated, nothing runs, one process with one connection
has the file to itself. What remains is what SQLite and the disk cost: each batch is one commit for
"started" and one for "completed", with `synchronous=FULL`, as in the product.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from holdfast.stores.sqlite import migrations

SCHEMA = Path(next(iter(migrations.__path__)))

PRAGMAS = (
    "journal_mode = wal",
    "synchronous = full",
    "busy_timeout = 10000",
    "cache_size = -64000",
    "mmap_size = 268435456",
    "wal_autocheckpoint = 4000",
    "temp_store = memory",
)

FILL = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO task (id, lane, place, state, rank, name, payload, created_at, run_at, max_retries,
timeout) SELECT printf('01900000-0000-7000-8000-%012x', n), 1, 1, 'queued', n, 'noop',
CAST(printf('{"n":%d}', n) AS BLOB), n, n, 3, 600000000 FROM numbers
"""

START = """
UPDATE task
SET place = 3, state = 'running', attempt = attempt + 1, worker_id = 'bench-worker',
    started_at = :now, ended = NULL
WHERE seq IN (
    SELECT seq FROM task WHERE place = 1 AND lane = 1 ORDER BY rank, id LIMIT :batch
)
"""

FINISH = """
UPDATE task
SET place = 4, state = 'completed', result = CAST(rank AS BLOB), finished_at = :now,
    ended = 'completed'
WHERE worker_id = 'bench-worker' AND place = 3
"""

COUNT = """
INSERT INTO tally (kind, key, n) VALUES ('state:completed', 0, :batch)
ON CONFLICT (kind, key) DO UPDATE SET n = n + excluded.n
"""


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


def drain_rate(path: Path, count: int, batch: int) -> float:
    """Tasks per second from the first start to the last completion of `count` waiting tasks."""
    connection = _connect(path)
    for script in sorted(SCHEMA.glob("*.sql")):
        connection.executescript(script.read_text())
    connection.execute("INSERT INTO lane VALUES (1, 'default', '[]', 'normal')")
    connection.execute(FILL, {"count": count})
    began = time.perf_counter()
    done = 0
    while done < count:
        done += _round(connection, batch)
    seconds = time.perf_counter() - began
    (completed,) = connection.execute(
        "SELECT count(*) FROM task WHERE state = 'completed'"
    ).fetchone()
    assert completed == count
    connection.close()
    return count / seconds


def _round(connection: sqlite3.Connection, batch: int) -> int:
    """Start a batch and finish it, each in one durable commit; returns how many."""
    values = {"now": time.time_ns() // 1000, "batch": batch}
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(START, values)
    connection.execute("COMMIT")
    connection.execute("BEGIN IMMEDIATE")
    finished = connection.execute(FINISH, values).rowcount
    connection.execute(COUNT, values)
    connection.execute("COMMIT")
    return finished
