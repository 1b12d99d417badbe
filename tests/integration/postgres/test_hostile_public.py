"""A database where somebody has put functions and operators of his own into `public`, for every
type and name that Holdfast uses (`hostile.sql`): none of them ever runs.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest
from tests.conformance.pair import Pair
from tests.conformance.test_one_behaviour import live
from tests.kit.servers.pgbouncer import PgBouncer
from tests.kit.servers.postgres import PostgresServer

from holdfast.core.gate import Capacity, Count, Gate, GateKind
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Delete, Put
from holdfast.core.task import NewTask, TaskId
from holdfast.dispatch.postgres.connection import PostgresConnection
from holdfast.dispatch.store_name import of_postgres
from holdfast.stores.postgres import upkeep
from holdfast.stores.postgres.queries import queries
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import WINDOW, new_task, new_tasks, success
from holdfast.testing.suites.base import add, claim, enlist, save

TRAPS = Path(__file__).with_name("hostile.sql").read_text()
PUBLIC_FIRST = "SET search_path = public, pg_catalog"
UNPINNED = """
SELECT p.oid::regprocedure::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = $1 AND p.prosqlbody IS NULL -- else its names were bound when it was made
AND NOT coalesce(p.proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']
"""


@pytest.fixture(scope="module")
def template(postgres: PostgresServer) -> Iterator[str]:
    """A database with nothing in it but traps."""
    name = f"hostile_{secrets.token_hex(4)}"
    postgres.create_database(name)
    sql = queries("holdfast")
    texts = (sql.routines, *sql.named.values(), *(migration.sql for migration in sql.migrations))
    words = sorted(set(re.findall(r"\b([a-z][a-z_0-9]*)\(", " ".join(texts))))
    known = (
        f"SELECT array_agg(DISTINCT proname) FROM pg_proc WHERE proname = ANY ('{_array(words)}')"
    )
    postgres.sql(TRAPS, database=name)
    postgres.sql(f"SELECT public.make_traps(({known}))", database=name)
    yield name
    postgres.drop_database(name)


@pytest.fixture
def hostile(postgres: PostgresServer, template: str) -> Iterator[str]:
    """A copy of it, by its name. Whoever was caught there fails the test."""
    name = f"test_{secrets.token_hex(6)}"
    postgres.create_database(name, template=template)
    yield name
    caught = postgres.sql("SELECT is_called FROM public.caught", database=name)
    postgres.drop_database(name)
    assert caught == "f"


@pytest.fixture(params=['"$user", public', "public, pg_catalog", "pooled"])
def url(request: pytest.FixtureRequest, postgres: PostgresServer, hostile: str) -> Iterator[str]:
    """With the path that PostgreSQL comes with; with one that lets even equals be replaced; and
    through a pooler, which does not let a connection choose its path.
    """
    if request.param == "pooled":
        with PgBouncer(postgres) as bouncer:
            yield f"{bouncer.url(hostile)}?pgbouncer=true"
    else:
        postgres.sql(f'ALTER DATABASE "{hostile}" SET search_path = {request.param}')
        yield postgres.url(hostile)


def test_a_long_life_never_meets_them(url: str, postgres: PostgresServer, hostile: str) -> None:
    pair = Pair(lambda clock: PostgresStore(url, clock=clock))
    _trap_states(postgres, hostile)

    live(pair, seed=1, steps=60)


async def test_neither_does_what_no_task_needs(
    url: str, postgres: PostgresServer, hostile: str
) -> None:
    async with PostgresStore(url) as store:
        _trap_states(postgres, hostile)
        await store.add([new_task(), new_task(run_at=None, lock="k")], idempotency_window=WINDOW)
        put = Put("note", "a", "{}", version=0, due_in=0.0)
        await store.commit(Changes("1", (new_task(),), (put,)))
        await store.commit(Changes("2", (), (put._replace(version=1),)))
        await store.records("note", keys=["a"], limit=1)
        await store.records("note", limit=1, group="")
        await store.records("note", limit=1, newest_first=True)
        await store.take_due("note", limit=1, lease=1.0)
        await store.commit(Changes("3", (), (Delete("note", "a"),)))
        first = new_task()
        await add(store, first, *gated(first.id))
        await store.commit(Changes("4", counts=[Count("latch:g", 2), Count("latch:g", -1)]))
        await store.commit(Changes("5", capacities=[Capacity("limit:a", 3)]))
        await save(store, *map(success, await claim(store, await enlist(store))))
        await claim(store, await enlist(store))
        assert len(await store.gates(limit=9)) > 1
        await store.cancel(TaskFilter(), limit=9)
        assert store._adding is not None
        await store._adding.call(["default"])
        await store.orphans(limit=1)
        await store._open.do(lambda db: upkeep._sweep_after(db, store._sql, 1_000_000))
        assert list(await store.check()) == []
        assert list(await store.migrate()) == []
    dsn = store._address.dsn
    connection = await PostgresConnection.open(dsn, "holdfast", lambda _: None)
    await connection.ask("sleep", "me", None, 5.0)
    assert await connection.ask("wake", ["default"]) == 1
    await connection.ask("awake", "me")
    connection.drop(ConnectionError("over"))
    assert await of_postgres(dsn, "holdfast")


async def test_submits_within_a_transaction_of_ones_own_do_not(
    postgres: PostgresServer, hostile: str
) -> None:
    url = postgres.url(hostile)
    clock = FakeClock()
    async with PostgresStore(url, clock=clock) as store:
        _trap_states(postgres, hostile)
        plain = await asyncpg.connect(url)
        await plain.execute(PUBLIC_FIRST)
        async with plain.transaction():
            batch = [*new_tasks(3), new_task(unique_key="u", lock="k", idempotency_key="i")]
            await store.add_within_async(plain, batch, idempotency_window=WINDOW)
            await plain.execute(
                "SELECT holdfast.submit('demo', tags => '{a}', delay => '1 minute')"
            )
            await plain.execute("SELECT holdfast.submit('demo', unique_key => 'u', owner => 'ann')")
        assert await plain.execute("SELECT * FROM holdfast.tasks") == "SELECT 6"
        await plain.close()
        with psycopg.connect(url) as other:
            other.execute(PUBLIC_FIRST)
            store.add_within(other, new_tasks(2), idempotency_window=WINDOW)
            assert len(other.execute("SELECT * FROM holdfast.tasks").fetchall()) == 8


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_handler_s_transaction_finds_its_own_tables_and_completes(
    postgres: PostgresServer, hostile: str, *, blocking: bool
) -> None:
    url = postgres.url(hostile)
    postgres.sql("CREATE TABLE public.orders (n text)", database=hostile)
    async with PostgresStore(url) as store:
        _trap_states(postgres, hostile)
        await store.add([new_task(lock="k")], idempotency_window=WINDOW)
        (found,) = await claim(store, await enlist(store))

        async with store.transaction(found, blocking=blocking) as inside:
            for statement in ("INSERT INTO orders VALUES ('one')", PUBLIC_FIRST):
                answer = inside.connection.execute(statement)  # type: ignore[attr-defined]
                if not blocking:
                    await answer
            await inside.complete(success(found))

        assert await inside.committed()
    assert postgres.sql("SELECT n FROM orders", database=hostile) == "one"


async def test_every_function_has_its_own_search_path_or_names_bound_at_its_making(
    fresh_schema: str,
) -> None:
    async with PostgresStore(fresh_schema) as store:
        unpinned = await store._open.do(lambda db: db.fetch(UNPINNED, store._address.schema))

    assert unpinned == []


def gated(behind: TaskId) -> list[NewTask]:
    """Tasks that together have gates of every kind."""
    gates = [Gate(kind, "a", 1, 60.0) for kind in GateKind if kind is not GateKind.LATCH]
    several = (*gates, Gate(GateKind.LIMIT, "b", 1), Gate(GateKind.LATCH, behind))
    given = ((several[-1],), several, tuple(gates[-1:]), tuple(gates[1:3]))
    return [new_task(gates=each, lock="k", counts=("latch:g",)) for each in given]


def _trap_states(postgres: PostgresServer, database: str) -> None:
    """Operators also for the type that is Holdfast's own."""
    postgres.sql(
        "SELECT public.make_traps('{}', ARRAY['holdfast.state', 'holdfast.state[]']::regtype[])",
        database=database,
    )


def _array(words: list[str]) -> str:
    return "{" + ",".join(words) + "}"
