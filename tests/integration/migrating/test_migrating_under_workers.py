"""On PostgreSQL workers of the last release work on while the schema is migrated, and after that:
what they call is there, means the same, and is the code of this release.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from itertools import chain

import asyncpg
import pytest
from tests.integration.migrating.conftest import HERE, TOLD, OldStore
from tests.integration.migrating.life import ALIVE

from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.stores.postgres.connections import Connection
from holdfast.testing.factories import new_tasks
from holdfast.testing.suites.base import MANY, add

SHAPE = """
SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid)
FROM pg_proc AS p WHERE p.pronamespace = 'holdfast'::regnamespace
UNION ALL
SELECT c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'holdfast'::regnamespace AND NOT a.attisdropped
AND c.relname !~ '_20[0-9]{6}' -- partitions
"""
NAMED = re.compile(r"^-- name: (\w+)\n(.*?);$", re.MULTILINE | re.DOTALL)
CALLS = dict(NAMED.findall((HERE / "release_calls.sql").read_text()))


@pytest.fixture
async def db(postgresql: OldStore) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(postgresql.url)
    yield connection
    await connection.close()


async def test_a_migrated_schema_is_that_of_a_new_database(
    postgresql: OldStore, db: Connection
) -> None:
    async with postgresql.migrated():
        migrated = await db.fetch(SHAPE)
    await db.execute("DROP SCHEMA holdfast CASCADE")
    async with postgresql.store():
        new = await db.fetch(SHAPE)

    assert {tuple(row) for row in migrated} == {tuple(row) for row in new}


async def test_all_that_a_worker_of_the_last_release_asks_for_is_understood(
    postgresql: OldStore, db: Connection
) -> None:
    async with postgresql.migrated():
        for call in CALLS.values():
            await db.prepare(call)

    assert {"claim", "save", "report", "beat", "orphans", "prune"} <= CALLS.keys()


async def test_a_worker_of_the_last_release_claims_and_settles_as_before(
    postgresql: OldStore, db: Connection
) -> None:
    now = postgresql.clock.now_us()
    async with postgresql.migrated() as store:
        await add(store, *new_tasks(3, callback="https://example.com/more"))

        assert await db.fetchval(CALLS["beat"], ALIVE, 1, "active", now, None)
        _, *groups = await db.fetch(CALLS["claim"], ALIVE, None, [], MANY, now)
        ids = list(chain.from_iterable(group["ids"] for group in groups))
        attempts = [group["attempt"] for group in groups for _ in group["ids"]]
        plain, failed = slice(1, None), [[ids[0]], attempts[:1], [ALIVE]]
        error = '["ValueError", "no", null, true]'
        how = [["retrying"], ["error"], [1], [0], [None], [error], [10**6], ["retry"], [None]]
        results = [b"1"] * len(ids[plain])
        refused = await db.fetch(
            CALLS["save"], ALIVE, ids[plain], attempts[plain], results, *failed, *how, now, None
        )

        assert {len(group) for group in groups} == {16}
        assert not refused
        ended = await store.count(
            TaskFilter(ids=tuple(ids), states=frozenset({State.COMPLETED})), limit=MANY
        )
        assert (ended, len({*ids})) == (len(ids) - 1, len(ids))
        first = await store.get(ids[0])
        assert first is not None
        assert (first.state, first.charged) == (State.RETRYING, 1)
        assert TOLD["tasks"]["queued"]["id"] in ids
        assert TOLD["tasks"]["paused"]["id"] not in ids
        assert list(await store.check()) == []
