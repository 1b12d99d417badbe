"""A handler's rows are written exactly once, though its worker may be killed at any moment."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import asyncpg
import pytest
from tests.acceptance.conftest import MakeStage, with_transactions
from tests.acceptance.stage import Stage, until
from tests.acceptance.storm import ARGUMENTS, SETTINGS, Killer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180), with_transactions]

TASKS = 400


def test_rows_written_in_the_tasks_transaction_are_there_exactly_once(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(**SETTINGS)
    stage.app.open()
    on_its_database(stage, "CREATE TABLE booking (number integer, attempt integer)")
    workers = [stage.worker(*ARGUMENTS) for _ in range(2)]
    killer = Killer(stage, workers, seed=5)

    stage.app.submit_many([stage.shop.book.call(n) for n in range(1, TASKS + 1)])
    killer.storm(8.0, every=0.5)
    until(lambda: not stage.unfinished(), within=60)

    rows = on_its_database(stage, "SELECT number, attempt FROM booking")
    numbers = sorted(number for number, _ in rows)
    assert numbers == [n for n in range(-TASKS, TASKS + 1) if n], "a row is missing, or there twice"
    assert stage.app.count(state="completed") == 2 * TASKS
    assert len(killer.killed) >= 10
    assert any(attempt > 1 for _, attempt in rows), "the storm hit nobody"


def on_its_database(stage: Stage, sql: str) -> list[tuple[int, int]]:
    """One statement on the user's side of the store's database."""
    url = stage.environment["HOLDFAST_URL"]
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db, db:
            return db.execute(sql).fetchall()
    return asyncio.run(_fetch(url, sql))


async def _fetch(url: str, sql: str) -> list[tuple[int, int]]:
    db = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await db.fetch(sql)]
    finally:
        await db.close()
