"""A file of the first release, with work in it, becomes one of this release."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.core.task import State, WorkerId
from holdfast.core.token import Scope, Token
from holdfast.errors import SchemaMismatch
from holdfast.pauses import resume
from holdfast.stores.sqlite import SQLiteStore
from holdfast.stores.sqlite.schema import migrations
from holdfast.testing.factories import new_task, success, task_id, worker_info
from holdfast.testing.suites.base import add, claim, get, save
from holdfast.tokens import Tokens

OLD_TASK = """
INSERT INTO task (
    id, lane, place, state, rank, name, payload, created_at, run_at, max_retries
) VALUES (?, 1, 1, 'queued', 1, 'demo', CAST('{}' AS BLOB), 1, 1, 3)
"""
OLD_WORKER = """
INSERT INTO worker (
    id, host, pid, version, capabilities, capacity, load, status, beats, started_at, beat_at
) VALUES ('old', 'localhost', 1, '0.1', '[]', 1, 0, 'active', 0, 1, 1)
"""


@pytest.fixture
def first_release(path: Path) -> str:
    """A file with schema version 1, a ready task and a worker; answers the task."""
    task = task_id()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(migrations()[1])
        db.execute("INSERT INTO lane VALUES (1, 'default', '[]', 'normal')")
        db.execute("INSERT INTO tally VALUES ('ready', 1, 1)")
        db.execute(OLD_TASK, (task,))
        db.execute(OLD_WORKER)
        db.commit()
    return task


async def test_an_old_file_is_refused_until_it_is_migrated(path: Path, first_release: str) -> None:
    store = SQLiteStore(path)

    with pytest.raises(SchemaMismatch, match="holdfast migrate"):
        await store.open()

    assert await store.schema_version() == 1
    assert list(await store.migrate()) == sorted(migrations())[1:]
    assert list(await store.migrate()) == []


async def test_what_was_in_an_old_file_goes_on(path: Path, first_release: str) -> None:
    await SQLiteStore(path).migrate()

    async with SQLiteStore(path) as store:
        (old,) = await store.workers()
        assert (old.kind, old.drain_requested) == ("python", False)
        (found,) = await claim(store, WorkerId("old"))
        await save(store, success(found))
        done = await get(store, found.task_id)
        assert (done.id, done.state, done.callback) == (first_release, State.COMPLETED, None)

        me = worker_info()
        await store.register(me)
        await add(store, new_task(callback="https://example.com"))
        await save(store, *map(success, await claim(store, me.id)))
        assert list(await store.check()) == []


async def test_tokens_and_pauses_of_the_second_schema_go_on(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(migrations()[1] + migrations()[2])
        db.execute("INSERT INTO token VALUES (1, 'ab', 'ci', '[\"submit\"]', x'0f', 1, 2, NULL)")
        db.execute("INSERT INTO paused_queue VALUES ('mail')")
        db.commit()

    await SQLiteStore(path).migrate()

    async with SQLiteStore(path) as store:
        (token,) = await Tokens(store).list()
        assert token == Token(
            id="ab",
            name="ci",
            scopes=frozenset({Scope.SUBMIT}),
            digest=b"\x0f",
            created_at=datetime(1970, 1, 1, microsecond=1, tzinfo=UTC),
            expires_at=datetime(1970, 1, 1, microsecond=2, tzinfo=UTC),
        )
        assert await resume(store, "mail")


async def test_a_worker_of_the_first_release_still_registers_on_a_migrated_file(
    path: Path, first_release: str
) -> None:
    async with SQLiteStore(path.with_name("new.db")) as store:
        with closing(sqlite3.connect(path.with_name("new.db"))) as db:
            db.execute(OLD_WORKER)
            db.commit()

        (old,) = await store.workers()

        assert (old.kind, old.drain_requested) == ("python", False)
