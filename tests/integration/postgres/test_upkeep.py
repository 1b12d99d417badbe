"""Partitions are made ahead and dropped by retention; the schema is made once, and says so."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator

import asyncpg
import pytest

from holdfast.core.query import TaskFilter
from holdfast.errors import SchemaMismatch, StoreError
from holdfast.stores.postgres.connections import Connection as Database
from holdfast.stores.postgres.queries import queries
from holdfast.stores.postgres.shrinking import TableShrinker
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, failure, new_task, new_tasks, success, worker_info
from holdfast.testing.suites.base import claim

DAY = 86_400.0

VERSIONS = [migration.version for migration in queries("holdfast").migrations]


@pytest.fixture
async def db(fresh_database: str) -> AsyncIterator[Database]:
    connection = await asyncpg.connect(fresh_database)
    yield connection
    await connection.close()


async def partitions(db: Database, kind: str) -> list[str]:
    rows = await db.fetch(
        "SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid "
        "WHERE i.inhparent = $1::text::regclass ORDER BY 1",
        f"holdfast.{kind}",
    )
    return [row[0] for row in rows]


async def test_partitions_are_there_from_the_beginning_and_ahead(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database) as store:
        assert list(await store.check()) == []

    today = await db.fetchval("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")
    made = await partitions(db, "task")
    assert made[-1] == "task_other"
    assert f"task_{today}" in made
    assert len(made) == 5
    assert len(await partitions(db, "done")) == 5


async def test_a_missing_partition_is_told_and_made_by_the_pruner(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database) as store:
        tomorrow = (await partitions(db, "task"))[1]
        await db.execute(f"DROP TABLE holdfast.{tomorrow}")
        told = list(await store.check())

        await store.prune(retention=DAY, dead_letter_retention=DAY, limit=500)

        assert len(told) == 1
        assert "missing" in told[0]
        assert list(await store.check()) == []


async def test_a_day_that_may_go_is_dropped_whole_and_what_must_stay_moves(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database) as store:
        me = worker_info()
        await store.register(me)
        await _make_partition(db, days_ago=10)
        old = await db.fetch(
            "SELECT overlay(holdfast.new_id()::text placing "
            "left(holdfast.first_id(now() - interval '10 days')::text, 13) from 1)::text "
            "FROM generate_series(1, 1500)"
        )
        ids = sorted({row[0] for row in old})
        await store.add(
            [new_task(id=task_id, max_retries=0, idempotency_key=task_id) for task_id in ids],
            idempotency_window=30 * DAY,
        )
        claims = await claim(store, me.id, limit=len(ids))
        await store.save([failure(claims[0]), *map(success, claims[1:-1])])
        await db.execute("UPDATE holdfast.done SET finished_at = finished_at - 864000000000")

        gone = await store.prune(retention=7 * DAY, dead_letter_retention=30 * DAY, limit=500)

        assert gone == 500  # "there may be more"
        assert len(await partitions(db, "task")) == 5
        kept = await store.list(TaskFilter(), limit=10)
        assert {task.id for task in kept.tasks} == {claims[0].task_id, claims[-1].task_id}
        assert await db.fetchval("SELECT count(*) FROM holdfast.idempotency") == 2
        assert not await store.save([success(claims[-1])])
        assert list(await store.check()) == []


async def test_a_backup_under_way_puts_partitions_off_and_holds_up_nobody(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database) as store:
        last = (await partitions(db, "task"))[3]
        await db.execute(f"DROP TABLE holdfast.{last}")
        backup = await asyncpg.connect(fresh_database)
        async with backup.transaction():
            await backup.execute("LOCK TABLE holdfast.task, holdfast.done IN ACCESS SHARE MODE")

            assert await store.prune(retention=DAY, dead_letter_retention=DAY, limit=500) == 0
            await store.add(new_tasks(1), idempotency_window=WINDOW)

            assert last not in await partitions(db, "task")
        await backup.close()

        await store.prune(retention=DAY, dead_letter_retention=DAY, limit=500)
        assert last in await partitions(db, "task")


async def _make_partition(db: Database, *, days_ago: int) -> None:
    for kind in ("task", "done"):
        name, first, last = await db.fetchrow(
            "SELECT to_char(day, '_YYYYMMDD'), holdfast.first_id(day AT TIME ZONE 'UTC')::text, "
            "holdfast.first_id((day + 1) AT TIME ZONE 'UTC')::text "
            "FROM (SELECT (now() AT TIME ZONE 'UTC')::date - $1::integer AS day) AS d",
            days_ago,
        ) or ("", "", "")
        await db.execute(
            f"CREATE TABLE holdfast.{kind}{name} PARTITION OF holdfast.{kind} "
            f"FOR VALUES FROM ('{first}') TO ('{last}')"
        )


async def test_of_many_that_open_an_empty_database_one_makes_the_schema(
    fresh_database: str, db: Database
) -> None:
    stores = [PostgresStore(fresh_database) for _ in range(5)]

    applied = await asyncio.gather(*(store.migrate() for store in stores))

    assert sorted(map(list, applied)) == [[], [], [], [], VERSIONS]
    assert await stores[0].schema_version() == VERSIONS[-1]


async def test_another_version_is_refused_and_names_the_command(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database):
        pass
    await db.execute("DELETE FROM holdfast.migration WHERE version > 1")

    with pytest.raises(SchemaMismatch, match="holdfast migrate"):
        await PostgresStore(fresh_database).open()

    await db.execute("INSERT INTO holdfast.migration (version) VALUES (99)")
    with pytest.raises(SchemaMismatch, match="upgrade this installation"):
        await PostgresStore(fresh_database).open()


async def test_a_schema_with_other_tables_is_left_alone(fresh_database: str, db: Database) -> None:
    await db.execute("CREATE SCHEMA holdfast; CREATE TABLE holdfast.mine (id integer)")

    with pytest.raises(StoreError, match="a schema of its own"):
        await PostgresStore(fresh_database).open()


def holdfast(*arguments: str, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast.cli.main", *arguments],
        env=os.environ | {"HOLDFAST_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )


async def test_the_printed_schema_is_the_one_that_migrate_makes(
    fresh_database: str, db: Database
) -> None:
    before = await asyncio.to_thread(holdfast, "migrate", "--check", url=fresh_database)
    printed = await asyncio.to_thread(holdfast, "migrate", "--print", url=fresh_database)
    await db.execute(printed.stdout)
    after = await asyncio.to_thread(holdfast, "migrate", "--check", url=fresh_database)

    assert before.returncode == 1, before.stderr
    assert "run `holdfast migrate`" in before.stdout
    assert after.returncode == 0, after.stdout
    async with PostgresStore(fresh_database) as store:
        await store.add(new_tasks(2), idempotency_window=WINDOW)
        assert list(await store.check()) == []


async def test_whoever_looks_for_orphans_sweeps_up_behind_the_tasks(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database) as store:
        me = worker_info()
        await store.register(me)
        for _ in range(13):
            await store.add(new_tasks(4_000), idempotency_window=WINDOW)
            claims = await claim(store, me.id, limit=4_000)
            assert not await store.save([success(each) for each in claims])

        async def both_were_vacuumed() -> bool:
            await store.orphans(limit=10)  # the counters come a second late
            return bool(
                await db.fetchval(
                    "SELECT bool_and(vacuum_count > 0 AND n_dead_tup < 10000) "
                    "FROM pg_stat_user_tables WHERE schemaname = 'holdfast' "
                    "AND relname IN ('ready', 'run')"
                )
            )

        await eventually(both_were_vacuumed, within=30)
        assert list(await store.check()) == []


async def test_who_settles_tasks_sweeps_up_behind_them_without_being_asked(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database) as store:
        me = worker_info()
        await store.register(me)

        async def pass_through(times: int) -> None:
            for _ in range(times):
                await store.add(new_tasks(4_000), idempotency_window=WINDOW)
                claims = await claim(store, me.id, limit=4_000)
                assert not await store.save([success(each) for each in claims])

        sizes, passed = [], []
        for number in (1, 2, 3):
            await pass_through(13)
            passed.append(13)
            while not await were_vacuumed(db, ["ready", "run", "tally"], number):
                await pass_through(1)
                passed[-1] += 1
            sizes.append(await db.fetchval(HOT_TABLES))

        # Three times as many tasks, and room for those between two sweeps, which may come late.
        assert sizes[-1] < 2 * sizes[0] * max(passed) / passed[0]
        assert await db.fetchval("SELECT count(*) FROM holdfast.tally") < 150


async def test_a_sweep_under_way_does_not_hold_up_the_end(fresh_database: str) -> None:
    async with PostgresStore(fresh_database) as store:
        me = worker_info()
        await store.register(me)
        for _ in range(13):
            await store.add(new_tasks(4_000), idempotency_window=WINDOW)
            claims = await claim(store, me.id, limit=4_000)
            await store.save([success(each) for each in claims])

    assert not [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]


async def test_at_rest_the_tables_give_back_the_room_that_a_backlog_took(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database) as store:
        me = worker_info()
        await store.register(me)
        for _ in range(5):
            await store.add(new_tasks(4_000), idempotency_window=WINDOW)
        large = await db.fetchval(PAGES, "ready")
        while claims := await claim(store, me.id, limit=4_000):
            assert not await store.save([success(each) for each in claims])
        assert await db.fetchval(PAGES, "ready") >= large > 150

        async def it_is_small() -> bool:
            await store.orphans(limit=10)
            return bool(await db.fetchval(PAGES, "ready") + await db.fetchval(PAGES, "run") == 0)

        await eventually(it_is_small, within=30)
        [again] = await store.add([new_task()], idempotency_window=WINDOW)
        assert [each.task_id for each in await claim(store, me.id, limit=5)] == [again.task_id]
        assert list(await store.check()) == []


async def fill_ready(db: Database, rows: int) -> None:
    await db.execute(
        "WITH came AS (INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late) "
        f"SELECT gen_random_uuid(), n, 1, 0, 0, false FROM generate_series(1, {rows}) AS n "
        "RETURNING 1) INSERT INTO holdfast.tally SELECT 'ready', 1, count(*) FROM came"
    )
    await db.execute("SELECT pg_stat_force_next_flush()")


async def empty_ready(db: Database, but: int = 0) -> None:
    await db.execute(
        f"WITH went AS (DELETE FROM holdfast.ready WHERE rank <> {but} RETURNING 1) "
        "INSERT INTO holdfast.tally SELECT 'ready', 1, -count(*) FROM went"
    )
    await db.execute("SELECT pg_stat_force_next_flush()")


async def test_a_table_that_is_full_or_in_use_keeps_its_size(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database):
        sql, shrinker = queries("holdfast"), TableShrinker()
        await fill_ready(db, 20_000)
        full = await db.fetchval(PAGES, "ready")

        for _ in range(3):
            await shrinker.give_back(db, sql)
        assert await db.fetchval(PAGES, "ready") == full

        for _ in range(3):
            await empty_ready(db)
            await fill_ready(db, 2_000)
            await empty_ready(db)
            await shrinker.give_back(db, sql)
            assert await db.fetchval(PAGES, "ready") >= full

        await shrinker.give_back(db, sql)  # nothing came in since
        assert await db.fetchval(PAGES, "ready") == 0


async def test_a_table_that_will_not_shrink_is_left_in_peace_for_a_while(
    fresh_database: str, db: Database
) -> None:
    async with PostgresStore(fresh_database):
        sql, shrinker = queries("holdfast"), TableShrinker()
        await fill_ready(db, 20_000)
        full = await db.fetchval(PAGES, "ready")
        await empty_ready(db, but=20_000)

        await shrinker.give_back(db, sql)
        await shrinker.give_back(db, sql)
        assert await db.fetchval(PAGES, "ready") == full

        await empty_ready(db)
        await shrinker.give_back(db, sql)
        assert await db.fetchval(PAGES, "ready") == full
        await TableShrinker().give_back(db, sql)
        assert await db.fetchval(PAGES, "ready") == full  # a first look knows nothing yet


PAGES = "SELECT pg_relation_size(('holdfast.' || $1::text)::regclass) / 8192"

HOT_TABLES = """
SELECT sum(pg_total_relation_size(c.oid))::bigint
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'holdfast' AND c.relname IN ('ready', 'run', 'tally')
"""


async def were_vacuumed(db: Database, tables: list[str], times: int = 1) -> bool:
    return bool(
        await db.fetchval(
            "SELECT bool_and(vacuum_count >= $2) FROM pg_stat_user_tables "
            "WHERE schemaname = 'holdfast' AND relname = ANY ($1)",
            tables,
            times,
        )
    )
