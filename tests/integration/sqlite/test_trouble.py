"""Trouble with the file: a clear error, no promise that is not kept, and no restart needed."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.core.query import TaskFilter
from holdfast.core.task import WorkerId
from holdfast.errors import SchemaMismatch, StoreError, StoreUnavailable
from holdfast.ports.records import one_record
from holdfast.stores.sqlite import SQLiteStore, connection
from holdfast.stores.sqlite.faults import explain
from holdfast.stores.sqlite.queries import SCHEMA
from holdfast.stores.sqlite.schema import migrations
from holdfast.stores.sqlite.writer import Unit
from holdfast.testing.factories import failure, new_tasks, success
from holdfast.testing.suites.base import EVERYTHING, MANY, add, all_ids, claim, claim_one, submit

HERE = Path(__file__).parent


def remove(path: Path) -> None:
    for part in path.parent.glob(f"{path.name}*"):
        part.unlink()


def move(path: Path, folder: Path) -> None:
    for part in path.parent.glob(f"{path.name}*"):
        part.rename(folder / part.name)


def run_child(role: str, *arguments: str | Path) -> str:
    """Run a role of `children.py` in a process of its own; returns what it said."""
    done = subprocess.run(
        [sys.executable, HERE / "children.py", role, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_is_told_and_overcome_without_a_restart(path: Path) -> None:
    """The child lowers the size its files may have (RLIMIT_FSIZE), which holds for root too, and
    lifts it again. The kernel then refuses the write as a full disk does.
    """
    said = run_child("full_disk", path).splitlines()

    assert said == ["before: ok", "full: StoreUnavailable", "reading: ok", "after: ok"]


async def test_what_a_full_disk_refused_is_not_there(path: Path) -> None:
    run_child("full_disk", path)

    async with SQLiteStore(path) as store:
        assert await store.count(TaskFilter(name="refused"), limit=MANY) == 0
        assert await store.count(TaskFilter(name="accepted"), limit=MANY) == 2
        assert list(await store.check()) == []


def test_a_full_database_is_called_a_full_disk(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA max_page_count = 2")
        db.execute("CREATE TABLE t (x)")
        with pytest.raises(sqlite3.OperationalError) as caught:
            db.execute("INSERT INTO t VALUES (zeroblob(100000))")

    error = explain(caught.value, path)

    assert isinstance(error, StoreUnavailable)
    assert "the disk is full" in str(error)
    assert "Nothing was written" in str(error)


async def test_a_database_that_turns_read_only_is_told_and_overcome(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that is remounted read-only cannot be had in a test, and the permissions of an
    open file do not matter to who has it open. So SQLite itself is told to refuse every write, on
    this connection and each one after it; it then gives the error of a read-only disk.
    """
    first = await submit(store)
    with monkeypatch.context() as patch:
        patch.setitem(SCHEMA, "settings", SCHEMA["settings"] + "PRAGMA query_only = ON;")
        await store._write(lambda unit: unit.db.execute("PRAGMA query_only = ON"))
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="read-only"):
                await submit(store)
        assert await all_ids(store) == [first]

    second = await submit(store)

    assert await all_ids(store) == [second, first]


def test_a_file_one_may_not_write_is_refused_until_one_may(tmp_path: Path) -> None:
    """Root may write everything, so the child becomes nobody first if it is root."""
    said = run_child("read_only_file").splitlines()

    assert said == ["read-only: StoreUnavailable", "writable: ok"]


async def test_a_lock_held_by_others_for_too_long_is_told_and_overcome(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_TIMEOUT", 0.1)
    async with SQLiteStore(path) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="kept the database locked"):
                await submit(store)
            assert await all_ids(store) == []
            other.execute("ROLLBACK")

        task = await submit(store)

        assert await all_ids(store) == [task]


async def test_readers_do_not_wait_for_a_writer(
    store: SQLiteStore, outside: sqlite3.Connection
) -> None:
    task = await submit(store)
    outside.execute("BEGIN IMMEDIATE")

    assert await all_ids(store) == [task]
    assert (await store.stats()).queues[0].ready == 1


async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "nowhere" / "holdfast.db")

    with pytest.raises(StoreUnavailable, match="nowhere") as caught:
        await store.open()

    assert "Check that the folder exists" in str(caught.value)


@pytest.fixture
def shopping_list(path: Path) -> Path:
    path.write_text("butter, and a rather long list of other things\n" * 100)
    return path


async def test_a_file_that_is_no_database_is_refused(shopping_list: Path) -> None:
    with pytest.raises(StoreError, match="is no SQLite database"):
        await SQLiteStore(shopping_list).open()


async def test_a_database_of_others_is_left_alone_until_it_is_migrated(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE invoices (x)")

    with pytest.raises(StoreError, match="invoices"):
        await SQLiteStore(path).open()

    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT name FROM sqlite_schema").fetchall() == [("invoices",)]
    await SQLiteStore(path).migrate()
    async with SQLiteStore(path) as store:
        await submit(store)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM invoices").fetchone() == (0,)


@pytest.mark.parametrize(
    ("version", "advice"), [(999, "upgrade this installation"), (-1, "holdfast migrate")]
)
async def test_another_schema_version_is_refused_with_the_command_to_run(
    path: Path, version: int, advice: str
) -> None:
    async with SQLiteStore(path) as store:
        await submit(store)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")

    other = SQLiteStore(path)
    with pytest.raises(SchemaMismatch, match=advice):
        await other.open()

    assert await other.schema_version() == version


async def test_a_store_of_an_old_version_is_migrated_without_being_open(path: Path) -> None:
    store = SQLiteStore(path)

    assert await store.schema_version() == 0
    assert list(await store.migrate()) == sorted(migrations())
    assert await store.schema_version() == max(migrations())
    assert list(await store.migrate()) == []


def test_a_store_carried_over_a_fork_says_so(path: Path) -> None:
    said = run_child("fork", path).splitlines()

    assert said == ["child: carried over a fork", "child's own: ok", "parent: ok"]


async def test_a_file_that_vanished_is_not_silently_replaced(
    store: SQLiteStore, path: Path, worker: WorkerId
) -> None:
    """The open file lives on without a name; who writes there would tell nobody."""
    await add(store, *new_tasks(3))
    remove(path)

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="deleted, moved or replaced"):
            await submit(store)
        with pytest.raises(StoreUnavailable, match="deleted, moved or replaced"):
            await all_ids(store)
        with pytest.raises(StoreUnavailable, match="deleted, moved or replaced"):
            await claim(store, WorkerId("w"))

    assert list(path.parent.iterdir()) == []


async def test_a_file_that_is_put_back_is_used_again_with_all_that_was_in_it(
    store: SQLiteStore, path: Path, tmp_path: Path
) -> None:
    first = await submit(store)
    (tmp_path / "away").mkdir()
    move(path, tmp_path / "away")
    with pytest.raises(StoreUnavailable):
        await submit(store)

    move(tmp_path / "away" / path.name, tmp_path)
    second = await submit(store)

    assert await all_ids(store) == [second, first]
    assert list(await store.check()) == []


async def test_a_file_that_was_replaced_gets_nothing_of_what_was_meant_for_the_old_one(
    store: SQLiteStore, path: Path, tmp_path: Path
) -> None:
    await submit(store)
    async with SQLiteStore(tmp_path / "other.db") as other:
        kept = await submit(other)
    remove(path)
    (tmp_path / "other.db").rename(path)

    with pytest.raises(StoreUnavailable, match="replaced"):
        await submit(store)
    second = await submit(store)

    assert await all_ids(store) == [second, kept]


async def test_a_file_that_goes_while_a_group_is_written_gets_no_acknowledgement(
    store: SQLiteStore, path: Path
) -> None:
    def write_and_lose(unit: Unit) -> str:
        unit.db.execute("INSERT INTO record VALUES ('pause', 'mail', 1, '{}', '', '', NULL, '')")
        path.rename(path.with_suffix(".lost"))
        return "done"

    with pytest.raises(StoreUnavailable, match="Nothing was written"):
        await store._write(write_and_lose)

    path.with_suffix(".lost").rename(path)
    assert await one_record(store, "pause", "mail") is None


def test_a_new_file_is_its_owner_s_alone_whatever_the_umask(path: Path) -> None:
    said = run_child("private_file", path).split()

    assert said == ["0o600", "0o600", "0o600"]


def test_a_file_that_is_there_keeps_its_rights(path: Path) -> None:
    path.touch()
    path.chmod(0o640)

    said = run_child("private_file", path).split()

    assert said == ["0o640", "0o640", "0o640"]


def test_who_only_looks_makes_no_file(path: Path) -> None:
    assert asyncio.run(SQLiteStore(path).schema_version()) == 0

    assert not path.exists()


async def test_errors_of_tasks_may_hold_any_text(store: SQLiteStore, worker: WorkerId) -> None:
    await submit(store)
    found = await claim_one(store, worker)
    nasty = "lone \ud800 surrogate, NUL \x00, \N{SNOWMAN}"

    await store.save([failure(found, message=nasty, type=nasty, traceback=nasty, retriable=False)])

    task = await store.get(found.task_id)
    assert task is not None
    assert task.error is not None
    assert (task.error.message, task.error.type, task.error.traceback) == (nasty, nasty, nasty)


async def test_payload_and_result_are_kept_byte_by_byte(
    store: SQLiteStore, worker: WorkerId
) -> None:
    """Also what is no JSON and no text: a codec may encrypt or compress."""
    payloads = [bytes(range(256)), b"", b"\x00\x00", b"\xff" * 5000, '"ü"'.encode(), b"null"]
    await add(store, *(new_tasks(1, payload=payload)[0] for payload in payloads))

    claimed = await store.claim(worker, queues=None, capabilities=frozenset(), limit=MANY)
    await store.save([success(found, found.payload) for found in claimed.claims])

    assert [found.payload for found in claimed.claims] == payloads
    kept = (await store.list(EVERYTHING, limit=MANY)).tasks
    assert [task.result for task in reversed(kept)] == payloads
    assert [task.payload for task in reversed(kept)] == payloads


async def test_more_payload_than_fits_in_one_answer_comes_in_several(
    store: SQLiteStore, worker: WorkerId
) -> None:
    """SQLite builds no value beyond a gigabyte; a lower limit stands in for a thousand payloads."""
    await add(store, *new_tasks(40, payload=b'"' + b"x" * 1_000 + b'"'))
    await store._write(lambda unit: unit.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 20_000))

    first = await claim(store, worker, limit=40)

    assert 1 <= len(first) < 40
    assert len(first) + len(await claim(store, worker, limit=10)) > len(first)


async def test_an_sqlite_that_is_too_old_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))

    with pytest.raises(StoreError, match=r"needs 3\.38\.0 or later"):
        await SQLiteStore(path).open()


async def test_a_lane_removed_by_hand_does_not_stop_the_claims(
    store: SQLiteStore, worker: WorkerId, outside: sqlite3.Connection
) -> None:
    await submit(store, queue="gone")
    await store.cancel(EVERYTHING, limit=MANY)
    await store.discard(EVERYTHING, limit=MANY)
    task = await submit(store, queue="kept")
    outside.execute("DELETE FROM lane WHERE queue = 'gone'")

    assert [found.task_id for found in await claim(store, worker)] == [task]
