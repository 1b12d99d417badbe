"""Through pgbouncer in transaction mode: no session state is needed, and none is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.kit.servers.pgbouncer import PgBouncer
from tests.kit.servers.postgres import PostgresServer

from holdfast.core.query import TaskFilter
from holdfast.core.task import State, WorkerId
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.factories import WINDOW, failure, new_tasks, success
from holdfast.testing.suites.base import claim, enlist

EVERYTHING = TaskFilter()


@pytest.fixture
async def store(postgres: PostgresServer, fresh_database: str) -> AsyncIterator[PostgresStore]:
    name = fresh_database.rpartition("/")[2]
    with PgBouncer(postgres, size=3) as bouncer:
        async with PostgresStore(f"{bouncer.url(name)}?pgbouncer=true") as store:
            yield store


async def test_callers_that_share_few_server_connections_do_not_meet(store: PostgresStore) -> None:
    workers = [await enlist(store) for _ in range(6)]
    batch = new_tasks(300, max_retries=0)
    await store.add(batch, idempotency_window=WINDOW)

    async def drain(worker: WorkerId) -> list[str]:
        started: list[str] = []
        while found := await claim(store, worker, limit=10):
            half = len(found) // 2
            await store.save([*map(success, found[:half]), *map(failure, found[half:])])
            await store.list(TaskFilter(states=frozenset({State.DEAD_LETTER})), limit=3)
            started += [each.task_id for each in found]
        return started

    shares = await asyncio.gather(*map(drain, workers))

    assert sorted(task for share in shares for task in share) == [new.id for new in batch]
    assert await store.count(EVERYTHING, limit=1000) == 300
    assert list(await store.check()) == []


async def test_settings_of_a_list_do_not_stay_with_the_connection(store: PostgresStore) -> None:
    await store.list(EVERYTHING, limit=5)

    settings = await store._open.do(
        lambda db: db.fetch(
            "SELECT name FROM pg_settings WHERE name LIKE 'enable_%' AND setting <> boot_val"
        )
    )

    assert settings == []
