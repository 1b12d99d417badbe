"""The server goes away and comes back, loops end, callers race: what the store makes of it."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.kit.servers.postgres import PostgresServer

from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.core.trouble import Trouble
from holdfast.errors import HoldfastError, IdempotencyConflict, StoreError, StoreUnavailable
from holdfast.stores.postgres import checks
from holdfast.stores.postgres.connections import Connection as Database
from holdfast.stores.postgres.queries import queries
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, failure, new_task, success
from holdfast.testing.suites.base import claim, enlist


@pytest.fixture
async def store(fresh_database: str) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(fresh_database) as store:
        yield store


@pytest.fixture
async def db(fresh_database: str) -> AsyncIterator[Database]:
    connection = await asyncpg.connect(fresh_database)
    yield connection
    await connection.close()


async def connections(db: Database) -> int:
    return int(
        await db.fetchval(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    )


async def test_a_server_that_is_away_is_unavailable_and_used_again_when_it_is_back(
    own_postgres: PostgresServer,
) -> None:
    async with PostgresStore(own_postgres.create_database("shop")) as store:
        await store.add([new_task()], idempotency_window=WINDOW)
        own_postgres.stop("immediate")

        with pytest.raises(StoreUnavailable) as away:
            await store.add([new_task()], idempotency_window=WINDOW)
        own_postgres.start()
        await store.add([new_task()], idempotency_window=WINDOW)

        assert (await store.stats()).states[State.QUEUED] == 2
        password = own_postgres.url("shop").split(":")[2].split("@")[0]
        assert password not in str(away.value)
        assert password not in store.url


async def test_after_all_backends_were_terminated_the_next_call_works(
    store: PostgresStore, db: Database
) -> None:
    await asyncio.gather(*(store.stats() for _ in range(4)))
    await db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    async def works() -> bool:
        try:
            await store.stats()
        except StoreUnavailable:
            return False
        return True

    await asyncio.sleep(0)  # the loop hears of it
    if not await works():
        assert await works()


async def test_a_loop_that_ends_closes_its_connections(store: PostgresStore, db: Database) -> None:
    await store.stats()
    mine = await connections(db)

    def elsewhere() -> None:
        async def ask() -> None:
            await asyncio.gather(*(store.stats() for _ in range(3)))

        asyncio.run(ask())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join)

    async def only_mine() -> bool:
        return await connections(db) == mine

    await eventually(only_mine)


async def test_a_cancelled_call_leaves_no_connection_in_the_middle_of_something(
    store: PostgresStore,
) -> None:
    calls = [asyncio.create_task(store.stats()) for _ in range(20)]
    await asyncio.sleep(0.001)
    for call in calls[::2]:
        call.cancel()

    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert {type(answer).__name__ for answer in answers} <= {"Stats", "CancelledError"}
    assert (await store.stats()).refused == 0


async def test_submits_that_come_together_share_a_commit(
    store: PostgresStore, db: Database
) -> None:
    await asyncio.gather(*(store.add([new_task()], idempotency_window=WINDOW) for _ in range(100)))

    commits = await db.fetchval("SELECT count(DISTINCT xmin::text) FROM holdfast.task")
    assert commits <= 5


async def test_a_conflict_among_gathered_submits_is_told_to_its_caller_only(
    store: PostgresStore,
) -> None:
    await store.add([new_task(idempotency_key="k", fingerprint="a")], idempotency_window=WINDOW)

    answers = await asyncio.gather(
        *(
            store.add([new_task(idempotency_key=key, fingerprint="b")], idempotency_window=WINDOW)
            for key in ("x", "k", "y")
        ),
        return_exceptions=True,
    )

    assert [isinstance(answer, IdempotencyConflict) for answer in answers] == [False, True, False]
    assert (await store.stats()).states[State.QUEUED] == 3


async def test_a_store_that_is_not_open_says_so(fresh_database: str) -> None:
    with pytest.raises(StoreError, match="not open"):
        await PostgresStore(fresh_database).stats()


async def test_racing_connections_never_give_one_lock_twice_nor_deadlock(
    store: PostgresStore, fresh_database: str
) -> None:
    """Submits, claims, failures, cancels and replays of three keys, from eight handles at once."""
    handles = [PostgresStore(fresh_database) for _ in range(8)]
    for handle in handles:
        await handle.open()
    holders: dict[str, str] = {}
    overlaps: list[str] = []
    unavailable: list[HoldfastError] = []

    async def churn(number: int) -> None:
        handle, dice = handles[number], random.Random(number)
        worker = await enlist(handle)
        for _ in range(25):
            try:
                await turn(handle, worker, dice)
            except StoreUnavailable as error:
                unavailable.append(error)

    async def turn(handle: PostgresStore, worker: object, dice: random.Random) -> None:
        keys = dice.sample(["a", "b", "c"], k=3)
        await handle.add(
            [new_task(lock=key, unique_key=str(dice.randrange(40)), max_retries=1) for key in keys],
            idempotency_window=WINDOW,
        )
        claims = await claim(handle, worker, limit=2)  # type: ignore[arg-type]
        for found in claims:
            key = str(found.lock)
            if key in holders:
                overlaps.append(key)
            holders[key] = found.task_id
        await asyncio.sleep(0.001)
        for found in claims:
            del holders[str(found.lock)]
        settle = success if dice.random() < 0.7 else lambda c: failure(c, backoff=0.0)
        await handle.save([settle(found) for found in claims])
        if dice.random() < 0.3:
            where = TaskFilter(states=frozenset({State.BLOCKED}), lock=keys[0])
            await handle.cancel(where, limit=2)

    await asyncio.gather(*(churn(number) for number in range(8)))
    for handle in handles:
        await handle.close()

    assert overlaps == []
    assert unavailable == []
    assert list(await store.check()) == []


async def test_a_long_transaction_that_submits_with_the_same_keys_holds_up_no_settlement(
    store: PostgresStore, fresh_database: str
) -> None:
    worker = await enlist(store)
    first = new_task(lock="doc:1", unique_key="u")
    await store.add([first], idempotency_window=WINDOW)
    (running,) = await claim(store, worker)
    locked, repeated = new_task(lock="doc:1"), new_task(unique_key="u")
    caller = await asyncpg.connect(fresh_database)
    async with caller.transaction():
        answers = await caller.fetch(
            "SELECT task_id, outcome FROM holdfast.add($1::json)",
            json.dumps(
                [
                    {"id": locked.id, "name": "demo", "payload": "{}", "lock": "doc:1"},
                    {"id": repeated.id, "name": "demo", "payload": "{}", "unique_key": "u"},
                ]
            ),
        )

        async with asyncio.timeout(5):
            assert not await store.save([success(running)])
    await caller.close()

    assert [tuple(answer) for answer in answers] == [
        (locked.id, "created"),
        (first.id, "unique_key"),
    ]
    assert [found.task_id for found in await claim(store, worker)] == [locked.id]
    assert list(await store.check()) == []


AT_ONCE = checks.LIMITS._replace(seconds=0.0)


async def ailments(db: Database, limits: checks.Limits) -> dict[str, Trouble]:
    """What is told with these limits, by code."""
    found = await checks.problems(db, queries("holdfast"), limits)
    return {each.code: each for each in found if isinstance(each, Trouble)}


async def test_a_transaction_that_keeps_dead_rows_is_told(
    store: PostgresStore, db: Database, fresh_database: str
) -> None:
    pin = await asyncpg.connect(fresh_database)
    await pin.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await pin.fetch("SELECT count(*) FROM holdfast.task")

    told = await ailments(db, AT_ONCE)

    assert list(told) == ["idle_in_transaction"]
    assert "dead rows cannot be removed" in told["idle_in_transaction"]
    assert list(await store.check()) == []
    (cure,) = re.findall(r"SELECT pg_terminate_backend\(\d+\);", told.popitem()[1].fix or "")
    await db.execute(cure)

    async def is_well() -> bool:
        return await ailments(db, AT_ONCE) == {}

    await eventually(is_well)
    await pin.close()


async def test_one_that_is_idle_after_it_wrote_is_told_because_of_its_locks(
    store: PostgresStore, db: Database, fresh_database: str
) -> None:
    writer = await asyncpg.connect(fresh_database)
    async with writer.transaction():
        await writer.execute("CREATE TABLE public.notes (text text)")

        told = await ailments(db, AT_ONCE)

        assert "stays locked" in told["idle_in_transaction"]
    await writer.close()


async def test_who_holds_back_the_removal_of_dead_rows_is_named(
    store: PostgresStore, db: Database, fresh_database: str
) -> None:
    pin = await asyncpg.connect(fresh_database)
    async with pin.transaction(isolation="repeatable_read"):
        await pin.fetch("SELECT count(*) FROM holdfast.task")
        for _ in range(5):
            await store.add([new_task()], idempotency_window=WINDOW)

        told = await ailments(db, checks.LIMITS._replace(transactions=3))

        assert f"because of the transaction of pid {pin.get_server_pid()}" in told["xmin_horizon"]
        assert not told["xmin_horizon"].harmful
    await pin.close()


async def test_dead_rows_that_autovacuum_leaves_are_told(
    store: PostgresStore, db: Database
) -> None:
    await db.execute("ALTER TABLE holdfast.ready SET (autovacuum_enabled = off)")
    for _ in range(3):
        await store.add([new_task() for _ in range(50)], idempotency_window=WINDOW)
    await store.cancel(TaskFilter(), limit=150)
    few = checks.LIMITS._replace(dead_rows=100)

    async def is_told() -> bool:
        return "dead_rows" in await ailments(db, few)

    await eventually(is_told, within=10.0)
    cure = (await ailments(db, few))["dead_rows"].fix or ""
    await db.execute(cure.partition(";")[0])
    assert "dead_rows" not in await ailments(db, few)


async def test_a_slot_that_nobody_reads_and_a_transaction_that_was_only_prepared_are_told() -> None:
    with PostgresServer(settings={"max_prepared_transactions": "2"}) as server:
        url = server.create_database("shop")
        async with PostgresStore(url) as store:
            assert list(await store.check()) == []
            db = await asyncpg.connect(url)
            await db.execute("BEGIN; CREATE TABLE public.x (n int); PREPARE TRANSACTION 'half'")
            await db.execute("SELECT pg_create_physical_replication_slot('unread', true)")
            await store.add([new_task()], idempotency_window=WINDOW)

            told = await ailments(db, AT_ONCE._replace(log_bytes=1))

            assert "'half' is open" in told["prepared_transaction"]
            assert "slot unread is not read" in told["unread_slot"]
            assert list(await store.check()) == []
            for code in ("prepared_transaction", "unread_slot"):
                found = re.search(r"(ROLLBACK PREPARED|SELECT pg_drop).*?;", told[code].fix or "")
                assert found is not None
                await db.execute(found[0])
            assert await ailments(db, AT_ONCE._replace(log_bytes=1)) == {}
            await db.close()


async def test_the_indexes_that_are_looked_for_are_those_of_a_new_schema(
    store: PostgresStore, db: Database
) -> None:
    there = await db.fetch("SELECT indexname FROM pg_indexes WHERE schemaname = 'holdfast'")

    expected = checks.expected_indexes(queries("holdfast"))

    assert set(expected) <= {name for (name,) in there}
    assert len(expected) >= 10
    assert "callback_due" not in expected


async def test_a_worker_is_buried_after_the_claim_it_has_under_way_and_that_is_rescued(
    store: PostgresStore, db: Database
) -> None:
    me = await enlist(store)
    new = new_task()
    await store.add([new], idempotency_window=WINDOW)
    claiming = db.transaction()
    await claiming.start()
    await db.fetch(queries("holdfast")["claim"], me, None, [], 10, None)

    burying = asyncio.create_task(store.bury(me, beats=None))
    await eventually(
        lambda: db.fetchval(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
    )
    assert list(await store.orphans(limit=10)) == []
    await claiming.commit()

    assert await burying
    assert [orphan.task_id for orphan in await store.orphans(limit=10)] == [new.id]
