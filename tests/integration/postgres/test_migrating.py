"""A schema of version 1 as it was really installed (`schema_1.sql`), with work in it, becomes one
of this release; and what its workers call still answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from holdfast.core.attempt import Claim
from holdfast.core.query import TaskFilter
from holdfast.core.task import Cause, Priority, State, TaskId, WorkerId
from holdfast.core.token import Bounds, Scope
from holdfast.errors import SchemaMismatch
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.factories import new_task, success, task_id
from holdfast.testing.suites.base import add, claim, get, save

REGISTER = """
SELECT holdfast.register(
    $1, 'localhost', 1, '0.1', NULL, '{}', 10, 0, 'active', 0::bigint, NULL::bigint
)
"""
ADD = """
SELECT n FROM holdfast.add_rows(
    ARRAY[$1::text], ARRAY['demo'], ARRAY['{}'::bytea],
    ARRAY[holdfast.lane_of('default', '{}', 'low')],
    ARRAY[0::bigint], ARRAY[3::bigint], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, 0::bigint, NULL::bigint
)
"""

CLAIM = "SELECT * FROM holdfast.claim($1::text, NULL::text[], '{}'::text[], 10, NULL::bigint)"
SAVE = """
SELECT n FROM holdfast.save(
    $1::text, $2::text[], $3::integer[], $4::bytea[], NULL::text[], NULL::integer[], NULL::text[],
    NULL::text[], NULL::text[], NULL::integer[], NULL::integer[], NULL::bytea[], NULL::text[],
    NULL::bigint[], NULL::text[], NULL::text[], NULL::bigint
)
"""
OLD_TOKEN = """
INSERT INTO holdfast.token (id, name, scopes, digest, created_at)
VALUES ('ab', 'ci', '{submit}', '', 1)
"""
SCHEMA_1 = Path(__file__).with_name("schema_1.sql").read_text()


@pytest.fixture
async def db(fresh_database: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(fresh_database)
    yield connection
    await connection.close()


@pytest.fixture
async def running(db: Connection) -> Claim:
    """Schema version 1, with a worker `old` that runs a task; answers its claim."""
    await db.execute("CREATE SCHEMA holdfast")
    await db.execute(SCHEMA_1)
    await db.execute("INSERT INTO holdfast.migration (version) VALUES (1)")
    await db.execute("SELECT holdfast.add_partitions()")
    await db.execute(REGISTER, "old")
    await db.execute("SELECT holdfast.submit('demo', unique_key => 'u', lock => 'k')")
    _, row = await db.fetch(CLAIM, "old")
    return Claim(
        TaskId(row["id"]), row["attempt"], WorkerId("old"), "demo", "default", Priority.NORMAL,
        row["payload"], 0, 3, 0, None, None, "k", row["fence"], Cause.SUBMITTED, None, None,
        False,
    )  # fmt: skip


async def test_an_old_schema_is_refused_until_it_is_migrated(
    fresh_database: str, running: Claim
) -> None:
    store = PostgresStore(fresh_database)

    with pytest.raises(SchemaMismatch, match="holdfast migrate"):
        await store.open()

    assert await store.schema_version() == 1
    assert list(await store.migrate()) == [2, 3, 4]
    assert list(await store.migrate()) == []


async def test_what_was_under_way_in_an_old_schema_goes_on(
    fresh_database: str, running: Claim
) -> None:
    await PostgresStore(fresh_database).migrate()

    async with PostgresStore(fresh_database) as store:
        (old,) = await store.workers()
        assert (old.kind, old.drain_requested) == ("python", False)
        await save(store, success(running))
        assert (await get(store, running.task_id)).state is State.COMPLETED
        await add(store, new_task(callback="https://example.com"), new_task())
        await save(store, *map(success, await claim(store, old.id)))
        assert len(await store.due_callbacks(limit=9, lease=1.0)) == 1
        assert await store.count(TaskFilter(states=frozenset({State.COMPLETED})), limit=9) == 3
        assert list(await store.check()) == []


async def test_a_token_of_the_third_schema_goes_on_unbound(
    fresh_database: str, db: Connection
) -> None:
    await PostgresStore(fresh_database).migrate()
    await db.execute("ALTER TABLE holdfast.token DROP COLUMN document")
    await db.execute("ALTER TABLE holdfast.worker DROP COLUMN blocked_by")
    await db.execute("DROP INDEX holdfast.done_died")
    await db.execute("DELETE FROM holdfast.migration WHERE version >= 4")
    await db.execute(OLD_TOKEN)

    assert list(await PostgresStore(fresh_database).migrate()) == [4]

    async with PostgresStore(fresh_database) as store:
        (token,) = await store.tokens()
        assert (token.name, token.scopes, token.bounds) == (
            "ci",
            frozenset({Scope.SUBMIT}),
            Bounds(),
        )


async def test_what_the_first_release_calls_still_answers_after_the_migration(
    fresh_database: str, db: Connection, running: Claim
) -> None:
    await PostgresStore(fresh_database).migrate()

    await db.execute(REGISTER, "another")
    await db.execute(ADD, task_id())

    async with PostgresStore(fresh_database) as store:
        assert [worker.id for worker in await store.workers()] == ["another", "old"]
        (found,) = await claim(store, WorkerId("another"))
        await save(store, success(found))
        assert list(await store.check()) == []


async def test_a_worker_of_the_first_release_works_on_and_owes_the_callbacks(
    fresh_database: str, db: Connection, running: Claim
) -> None:
    await PostgresStore(fresh_database).migrate()
    async with PostgresStore(fresh_database) as store:
        await add(store, new_task(callback="https://example.com"), *(new_task() for _ in range(12)))

        _, *rows = await db.fetch(CLAIM, "old")
        ids, ones = [row["id"] for row in rows], [1] * len(rows)
        refused = await db.fetch(SAVE, "old", ids, ones, [b"1"] * len(rows))

        assert len(rows) == 10
        assert not refused
        assert len(await store.due_callbacks(limit=9, lease=1.0)) == 1
        assert await store.count(TaskFilter(states=frozenset({State.COMPLETED})), limit=99) == 10
        assert list(await store.check()) == []
