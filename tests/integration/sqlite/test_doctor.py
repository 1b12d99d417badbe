"""`check` finds what is wrong: each test breaks one thing behind the store's back."""

from __future__ import annotations

import sqlite3

import pytest

from holdfast.core.gate import Gate, GateKind
from holdfast.core.task import WorkerId
from holdfast.stores.sqlite import SQLiteStore
from holdfast.stores.sqlite.writer import Unit
from holdfast.testing.factories import new_task, success
from holdfast.testing.suites.base import add, claim, save


@pytest.fixture
async def used(store: SQLiteStore, worker: WorkerId) -> SQLiteStore:
    """A store with a task in every place."""
    await add(
        store,
        new_task(),
        new_task(),
        new_task(delay=60.0, expires_in=90.0),
        new_task(lock="k", unique_key="u", idempotency_key="i"),
        new_task(lock="k"),
    )
    first, *_ = await claim(store, worker, limit=2)
    await save(store, success(first))
    assert list(await store.check()) == []
    return store


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("UPDATE tally SET n = n + 1 WHERE kind = 'ready'", "the tally says"),
        ("DELETE FROM tally WHERE kind = 'state:completed'", "the tally says 0"),
        ("UPDATE task SET state = 'queued' WHERE place = 3", "other columns disagree"),
        ("UPDATE task SET due_at = due_at + 1 WHERE place = 0", "other columns disagree"),
        (
            "UPDATE task SET holds = NULL WHERE holds IS NOT NULL",
            "waits for lock:k, which it may pass",
        ),
        ("UPDATE task SET live_key = NULL", "other columns disagree"),
        ("UPDATE task SET expiry = NULL", "other columns disagree"),
        ("UPDATE task SET finished_at = NULL", "other columns disagree"),
        ("UPDATE task SET worker_id = NULL WHERE place = 3", "other columns disagree"),
        ("UPDATE task SET place = 7 WHERE place = 4", "other columns disagree"),
        ("UPDATE task SET lane = 99 WHERE place = 4", "a lane that does not exist"),
        ("INSERT INTO event (task, at, kind) VALUES (99, 0, 'log')", "history of task number 99"),
        ("UPDATE idempotency SET task_id = 'x'", "names a task that does not exist"),
    ],
)
async def test_damage_is_found(
    used: SQLiteStore, outside: sqlite3.Connection, damage: str, finding: str
) -> None:
    assert outside.execute(damage).rowcount > 0

    found = await used.check()

    assert finding in "\n".join(found)


@pytest.fixture
async def gated(store: SQLiteStore, worker: WorkerId) -> SQLiteStore:
    """A store with tasks before and behind gates of every kind."""
    first = new_task()
    limit, rate = Gate(GateKind.LIMIT, "l", 2), Gate(GateKind.RATE, "r", 1, 60.0)
    await add(
        store,
        first,
        new_task(gates=(Gate(GateKind.LATCH, first.id), limit)),
        *[new_task(gates=(limit,)) for _ in range(3)],
        *[new_task(gates=(rate, Gate(GateKind.SHARE, "s", 3)), lock=f"k{n}") for n in range(2)],
        new_task(lock="k1"),
    )
    await claim(store, worker)
    assert list(await store.check()) == []
    return store


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("UPDATE gate SET held = 1 WHERE name = 'limit:l'", "limit:l is held by 1, but 2 have"),
        ("UPDATE gate SET held = 0 WHERE name = 'share:s'", "share:s is held by 0, but 2 have"),
        ("DELETE FROM gate WHERE name = 'limit:l'", "waits for limit:l, which it may pass"),
        ("UPDATE gate SET starts = NULL, look_at = NULL", "waits for rate:r, which it may pass"),
        ("UPDATE task SET passed = 0 WHERE waits_for = 'rate:r'", "other columns disagree"),
        ("UPDATE task SET holds = NULL WHERE waits_for = 'rate:r'", "lock:k1 is held by 0, but 1"),
        ("UPDATE gate SET opened_at = 1 WHERE name GLOB 'latch:*'", ", which it may pass"),
        ("INSERT INTO gate VALUES ('limit:x', 1, 0, NULL, 0, NULL, 0, 0, NULL, NULL)", "is kept"),
    ],
)
async def test_damaged_gates_are_found(
    gated: SQLiteStore, outside: sqlite3.Connection, damage: str, finding: str
) -> None:
    assert outside.execute(damage).rowcount > 0

    found = await gated.check()

    assert finding in "\n".join(found)


async def test_a_second_holder_of_a_lock_is_impossible(
    used: SQLiteStore, outside: sqlite3.Connection
) -> None:
    """Whatever the code does: the database itself refuses."""
    with pytest.raises(sqlite3.IntegrityError, match=r"UNIQUE.*holds"):
        outside.execute("UPDATE task SET place = 1, holds = 'k' WHERE place = 2")


async def test_a_second_unfinished_task_with_a_unique_key_is_impossible(
    used: SQLiteStore, outside: sqlite3.Connection
) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=r"UNIQUE.*live_key"):
        outside.execute("UPDATE task SET live_key = 'u' WHERE place = 0")


async def test_promises_stand_on_the_settings_they_need(used: SQLiteStore) -> None:
    def settings(db: sqlite3.Connection) -> list[object]:
        wanted = ("journal_mode", "synchronous", "busy_timeout", "wal_autocheckpoint")
        return [db.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted]

    assert await used._write(lambda unit: settings(unit.db)) == ["wal", 2, 0, 4000]


async def test_unsafe_settings_are_found(used: SQLiteStore) -> None:
    def set_off(unit: Unit) -> sqlite3.Cursor:
        return unit.db.execute("PRAGMA synchronous = OFF")

    await used._write(set_off, peek=set_off)  # outside a transaction, where it may be changed

    (found,) = await used.check()

    assert "a power cut may lose" in found
