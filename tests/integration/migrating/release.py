"""Makes a store as the last release leaves it, and writes down what is in it:

- `release_sqlite.sql` and `release_postgres.sql`: its rows; of PostgreSQL also its views, and its
  functions without their bodies, which nobody can call but every migration has to replace.
- `release.json`: what that release itself tells of its tasks and workers.
- `release_calls.sql`: what its workers ask PostgreSQL for.

Ids, instants and names are fixed, so making them again gives the same files. In a clone, with the
code of the last release in another folder and a `pg_dump` as new as the server:

    git worktree add ../last dd262f3
    export PYTHONPATH=../last/src:.
    python -m tests.integration.migrating.release sqlite:///empty.db
    python -m tests.integration.migrating.release postgresql://…/empty
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.integration.migrating.life import Life, pictures

from holdfast.stores.postgres.queries import blocks
from holdfast.testing.clock import FakeClock
from holdfast.wiring import open_store

HERE = Path(__file__).parent
MADE = "-- Made by `release.py` with the code of the last release (dd262f3). Never edited.\n"
CALLING = ("tasks", "claims", "settlements", "operations", "workers", "queues", "transactions")
ROUTINES = """
SELECT made FROM (
    SELECT oid, format(
        'CREATE FUNCTION %s(%s) RETURNS %s LANGUAGE plpgsql AS $$BEGIN RAISE ''old''; END$$;',
        oid::regproc, pg_get_function_arguments(oid), pg_get_function_result(oid)
    ) AS made
    FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace
    UNION ALL
    SELECT oid, format('CREATE VIEW %s AS %s', oid::regclass, pg_get_viewdef(oid))
    FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'v'
) AS routine ORDER BY oid
"""
# The server's own clock is in one column; and what was counted is summed up, as workers do.
TIDIED = f"""
UPDATE holdfast.floor SET moved_at = '2026-03-01';
SELECT holdfast.fold_tally({FakeClock().now_us()});
"""
DAY = ("019ca6b1-dc00-0000-0000-000000000000", "019cabd8-3800-0000-0000-000000000000")
PARTITIONS = [
    f"CREATE TABLE holdfast.{kind}_20260301 PARTITION OF holdfast.{kind} "
    f"FOR VALUES FROM ('{DAY[0]}') TO ('{DAY[1]}');"
    for kind in ("task", "done")
]


async def main(url: str) -> None:
    clock = FakeClock()
    async with open_store(url, clock) as store:
        await Life(store, clock).lead()
        assert list(await store.check()) == []
        told = await pictures(store) | {"now": {"is": clock.now.isoformat()}}
    (HERE / "release.json").write_text(_json(told))
    if url.startswith("sqlite"):
        (HERE / "release_sqlite.sql").write_text(MADE + _sqlite(url.removeprefix("sqlite:///")))
    else:
        (HERE / "release_postgres.sql").write_text(MADE + _postgres(url))
        (HERE / "release_calls.sql").write_text(MADE + _calls())


def _json(told: dict[str, dict[str, object]]) -> str:
    """With one line for each task and worker."""
    parts = []
    for kind, by_name in told.items():
        lines = [
            f" {json.dumps(name)}: {json.dumps(each, sort_keys=True)}"
            for name, each in sorted(by_name.items())
        ]
        parts.append(f'"{kind}": {{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


def _sqlite(path: str) -> str:
    with closing(sqlite3.connect(path)) as db:
        return "".join(f"{line}\n" for line in db.iterdump() if line.startswith("INSERT"))


def _postgres(url: str) -> str:
    _lines(["psql", "-c", TIDIED, url])
    dump = ["pg_dump", "--data-only", "--inserts", "--load-via-partition-root", "-n", "holdfast"]
    left = ["-T", "holdfast.migration", "-T", "holdfast.sleeper"]
    rows = _lines([*dump, *left, url])
    kept = [row for row in rows if row.startswith(("INSERT", "SELECT pg_catalog.setval"))]
    routines = _lines(["psql", "-At", "-c", ROUTINES, url])
    return "".join(f"{line}\n" for line in (*routines, *PARTITIONS, *kept))


def _lines(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return done.stdout.splitlines()


def _calls() -> str:
    named = [each for noun in CALLING for each in blocks(noun).items()]
    return "\n".join(f"-- name: {name}\n{text};\n" for name, text in named)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
