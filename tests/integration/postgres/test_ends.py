"""Successes on PostgreSQL that are no first ones, or that meet a cancel request on their way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from holdfast.core.attempt import Claim
from holdfast.core.task import State
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import failure, success
from holdfast.testing.suites.base import attempts, claim_one, enlist, get, save, state, submit

WAITERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture
async def store(fresh_database: str) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(fresh_database) as store:
        yield store


@pytest.fixture
async def db(fresh_database: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(fresh_database)
    yield connection
    await connection.close()


async def claim_again(store: PostgresStore, failures: int) -> Claim:
    """A task that has failed so often, running."""
    worker = await enlist(store)
    await submit(store)
    for _ in range(failures):
        await save(store, failure(await claim_one(store, worker), backoff=0.0))
    return await claim_one(store, worker)


@pytest.mark.parametrize("failures", [0, 1])
async def test_a_success_that_waited_for_a_cancel_request_leaves_nothing_behind(
    store: PostgresStore, db: Connection, fresh_database: str, failures: int
) -> None:
    claim = await claim_again(store, failures)
    asking = await asyncpg.connect(fresh_database)
    async with asking.transaction():
        await asking.fetchval("SELECT holdfast.ask_to_stop(ARRAY[$1]::uuid[], 0)", claim.task_id)
        saving = asyncio.create_task(store.save([success(claim)]))
        await eventually(lambda: db.fetchval(WAITERS))
    await asking.close()

    assert list(await saving) == []
    assert await state(store, claim.task_id) is State.COMPLETED
    assert await db.fetchval("SELECT count(*) FROM holdfast.run") == 0
    assert await db.fetchval("SELECT count(*) FROM holdfast.stop") == 0
    assert list(await store.check()) == []


async def test_a_success_after_failures_keeps_what_these_were_charged(store: PostgresStore) -> None:
    claim = await claim_again(store, 2)
    late, again = failure(claim), success(claim, b'"well"')

    await save(store, again)
    assert list(await store.save([again])) == []
    assert [refusal.task_id for refusal in await store.save([late])] == [claim.task_id]

    task = await get(store, claim.task_id)
    assert (task.charged, task.result, task.error) == (2, b'"well"', None)
    assert [attempt.charged for attempt in await attempts(store, claim.task_id)] == [
        True, True, False,
    ]  # fmt: skip
