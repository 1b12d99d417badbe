"""A handler's rows are written exactly once, though its worker may be killed at any moment."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import Protocol

import asyncpg
import pytest
from pymongo import MongoClient
from tests.acceptance.conftest import MakeStage, on_every_store
from tests.acceptance.stage import Stage, until
from tests.acceptance.storm import ARGUMENTS, SETTINGS, Killer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400), on_every_store]

TASKS = 400


def test_rows_written_in_the_tasks_transaction_are_there_exactly_once(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(**SETTINGS)
    stage.app.open()
    tasks = TASKS // 8 if stage.is_slow else TASKS
    bookings = bookings_of(stage)
    bookings.make()
    workers = stage.fleet(2, *ARGUMENTS)
    killer = Killer(stage, workers, seed=5)

    stage.app.submit_many([stage.shop.book.call(n) for n in range(1, tasks + 1)])
    killer.storm(8.0, every=0.5)
    until(lambda: not stage.unfinished(), within=bookings.patience)

    rows = bookings.rows()
    numbers = sorted(number for number, _ in rows)
    assert numbers == [n for n in range(-tasks, tasks + 1) if n], "a row is missing, or there twice"
    assert stage.app.count(state="completed") == 2 * tasks
    assert len(killer.killed) >= 5
    assert any(attempt > 1 for _, attempt in rows), "the storm hit nobody"


class Bookings(Protocol):
    """The handlers' rows, on the user's side of the store's database."""

    patience: float

    def make(self) -> None: ...

    def rows(self) -> list[tuple[int, int]]: ...


def bookings_of(stage: Stage) -> Bookings:
    url = stage.environment["HOLDFAST_URL"]
    return InMongo(url) if url.startswith("mongodb") else InSql(url)


class InSql:
    patience = 120.0

    def __init__(self, url: str) -> None:
        self._url = url

    def make(self) -> None:
        self._run("CREATE TABLE booking (number integer, attempt integer)")

    def rows(self) -> list[tuple[int, int]]:
        return self._run("SELECT number, attempt FROM booking")

    def _run(self, sql: str) -> list[tuple[int, int]]:
        if self._url.startswith("sqlite:///"):
            with closing(sqlite3.connect(self._url.removeprefix("sqlite:///"))) as db, db:
                return db.execute(sql).fetchall()
        return asyncio.run(_fetch(self._url, sql))


class InMongo:
    patience = 240.0  # whoever dies within the commit keeps its task for a minute

    def __init__(self, url: str) -> None:
        self._url = url.partition("?")[0]

    def make(self) -> None:
        client: MongoClient[dict[str, int]] = MongoClient(self._url)
        with client:
            client.get_default_database().create_collection("booking")

    def rows(self) -> list[tuple[int, int]]:
        client: MongoClient[dict[str, int]] = MongoClient(self._url)
        with client:
            found = client.get_default_database().booking.find()
            return [(one["number"], one["attempt"]) for one in found]


async def _fetch(url: str, sql: str) -> list[tuple[int, int]]:
    db = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await db.fetch(sql)]
    finally:
        await db.close()
