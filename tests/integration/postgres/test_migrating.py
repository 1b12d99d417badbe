"""A schema of version 1 as it was really installed (`schema_1.sql`), with work in it, becomes one
of this release; and what its workers call still answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest

from holdfast.core.attempt import Claim
from holdfast.core.gate import Gate, GateKind
from holdfast.core.query import TaskFilter
from holdfast.core.task import Cause, Priority, State, TaskId, WorkerId
from holdfast.core.token import Bounds, Scope, Token
from holdfast.errors import SchemaMismatch
from holdfast.pauses import resume
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import queries
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.factories import new_task, success, task_id
from holdfast.testing.suites.base import add, claim, get, save
from holdfast.tokens import Tokens

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
OLD_HOLDER = "SELECT holder::text FROM holdfast.lock WHERE key = $1::text"
OLD_TOKEN = """
INSERT INTO holdfast.token (id, name, scopes, digest, created_at, expires_at, document)
VALUES ('ab', 'ci', '{submit}', '\\x0f', 1, 2, '{"owner": "anna"}')
"""
VERSIONS = [migration.version for migration in queries("holdfast").migrations]
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
    assert list(await store.migrate()) == VERSIONS[1:]
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
        assert await store.count(TaskFilter(states=frozenset({State.COMPLETED})), limit=9) == 3
        assert list(await store.check()) == []


async def test_locks_in_use_are_gates_after_the_migration(
    fresh_database: str, db: Connection, running: Claim
) -> None:
    await db.execute("SELECT holdfast.submit('demo', lock => 'k')")
    await db.fetch(CLAIM, "old")  # it stands in line
    await PostgresStore(fresh_database).migrate()

    async with PostgresStore(fresh_database) as store:
        (lock,) = await store.gates(limit=9)
        assert (lock.name, lock.held, lock.parked) == ("lock:k", 1, 1)
        assert lock.holder == running.task_id
        assert await db.fetchval(OLD_HOLDER, "k") == running.task_id
        assert list(await store.check()) == []
        await save(store, success(running))
        (found,) = await claim(store, WorkerId("old"))
        assert (found.lock, list(await store.check())) == ("k", [])


async def test_a_worker_of_the_first_release_counts_starts_and_lets_go_of_gates(
    fresh_database: str, db: Connection, running: Claim
) -> None:
    await PostgresStore(fresh_database).migrate()
    async with PostgresStore(fresh_database) as store:
        gates = (Gate(GateKind.LIMIT, "few", 2), Gate(GateKind.RATE, "slow", 3, 60.0))
        await add(store, *(new_task(gates=gates) for _ in range(5)))
        started = []

        for _ in range(3):
            _, *rows = await db.fetch(CLAIM, "old")
            ids = [row["id"] for row in rows]
            assert not await db.fetch(SAVE, "old", ids, [1] * len(ids), [b"1"] * len(ids))
            started.append(len(ids))

        assert started == [2, 1, 0]
        assert list(await store.check()) == []


async def test_tokens_and_pauses_of_the_fourth_schema_go_on(
    fresh_database: str, db: Connection, running: Claim
) -> None:
    for migration in queries("holdfast").migrations[1:4]:
        await db.execute(migration.sql)
        await db.execute("INSERT INTO holdfast.migration (version) VALUES ($1)", migration.version)
    await db.execute(OLD_TOKEN)
    await db.execute("INSERT INTO holdfast.paused_queue VALUES ('mail')")

    assert list(await PostgresStore(fresh_database).migrate()) == VERSIONS[4:]

    async with PostgresStore(fresh_database) as store:
        (token,) = await Tokens(store).list()
        assert token == Token(
            id="ab",
            name="ci",
            scopes=frozenset({Scope.SUBMIT}),
            digest=b"\x0f",
            created_at=datetime(1970, 1, 1, microsecond=1, tzinfo=UTC),
            expires_at=datetime(1970, 1, 1, microsecond=2, tzinfo=UTC),
            bounds=Bounds(owner="anna"),
        )
        assert await db.fetchval("SELECT queue FROM holdfast.paused_queue") == "mail"
        assert await db.fetchval("SELECT owner FROM holdfast.tokens") == "anna"
        assert await resume(store, "mail")


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


async def test_a_worker_of_the_first_release_works_on(
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
        assert await store.count(TaskFilter(states=frozenset({State.COMPLETED})), limit=99) == 10
        assert list(await store.check()) == []
