"""The view `tasks`: SQL for people, the same columns on SQLite and on PostgreSQL."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from holdfast import Holdfast
from holdfast.core.priority import parse_priority
from holdfast.core.task import Priority
from holdfast.core.trace import EXAMPLE

SELECT = "SELECT * FROM {} ORDER BY priority_number DESC, id"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/t.db"
    return str(request.getfixturevalue("fresh_database"))


async def seen(url: str) -> list[dict[str, Any]]:
    """What a person sees."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as db:
            found = db.execute(SELECT.format("tasks"))
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, row, strict=True)) for row in found]
        db.close()
        return rows
    connection = await asyncpg.connect(url)
    rows = [dict(row) for row in await connection.fetch(SELECT.format("holdfast.tasks"))]
    await connection.close()
    return rows


async def test_a_person_sees_tasks_with_traceback_timeout_and_a_priority_that_sorts(
    url: str,
) -> None:
    async with Holdfast(url=url) as app:

        @app.task(name="fail", max_retries=0, timeout="90s", priority="critical")
        def fail(n: int) -> None:
            raise LookupError(f"no {n}")

        @app.task(name="idle", max_retries="unlimited", timeout="none", lock="l", tags=["t"])
        def idle() -> str:
            return "well"

        await fail.options(traceparent=EXAMPLE).submit_async(7)
        await idle.options(priority="low", idempotency_key="i").submit_async()
        await app.run_worker(burst=True)
        await idle.options(priority="high", delay="1h").submit_async()

    dead, waiting, done = await seen(url)

    assert [row["priority"] for row in (dead, waiting, done)] == ["critical", "high", "low"]
    for row in (dead, waiting, done):
        assert parse_priority(row["priority_number"]) is Priority(row["priority"])
        assert datetime.fromisoformat(str(row["created_at"])).utcoffset() is not None
    assert (dead["state"], dead["reason"]) == ("dead_letter", "retries_exhausted")
    assert (dead["error_type"], dead["error_message"]) == ("LookupError", "no 7")
    assert "raise LookupError" in dead["traceback"]
    assert (dead["timeout"], dead["max_retries"]) == (90.0, 0)
    assert (done["timeout"], done["max_retries"]) == (None, None)
    assert (done["state"], done["result"], done["idempotency_key"]) == ("completed", '"well"', "i")
    assert str(done["created_at"]) < str(done["finished_at"])
    assert (waiting["finished_at"], waiting["lock"]) == (None, "l")
    assert bool(waiting["cancel_requested"]) is False
    assert (dead["trace"], dead["trace_id"]) == (EXAMPLE, EXAMPLE[3:35])
    assert (done["trace"], done["trace_id"]) == (None, str(done["id"]).replace("-", ""))


async def test_both_views_have_the_same_columns(tmp_path: Path, fresh_database: str) -> None:
    columns = []
    for url in (f"sqlite:///{tmp_path}/t.db", fresh_database):
        async with Holdfast(url=url) as app:
            await app.task(name="one")(lambda: None).submit_async()
        columns.append(list((await seen(url))[0]))

    assert columns[0] == columns[1]
