"""A deep backlog, an old snapshot and a long history cost a claim nothing."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Iterator
from itertools import product

import asyncpg
import pytest
from tests.kit.servers.postgres import PostgresServer

from holdfast.core.gate import Gate, GateKind
from holdfast.core.query import Edge, Order, TaskFilter
from holdfast.core.task import State, TaskId, WorkerId
from holdfast.stores.columns import as_time
from holdfast.stores.postgres.connections import Connection as Database
from holdfast.stores.postgres.ends import Ends
from holdfast.stores.postgres.listing import Listing
from holdfast.stores.postgres.queries import queries
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_task, new_tasks, release, success, worker_info

MANY = 1_000_000
QUEUED = TaskFilter(states=frozenset({State.QUEUED}))
DONE = TaskFilter(states=frozenset({State.COMPLETED}))

FILL = """
INSERT INTO holdfast.worker (
    id, host, pid, version, capabilities, capacity, load, status, beats, started_at, beat_at
) VALUES ('w', '', 1, '', '{}', 1, 0, 'active', 0, 0, 0);
SELECT holdfast.lane_of('default', '{}', 'normal');
INSERT INTO holdfast.task (id, rank, created_at, run_at, lane, max_retries, name, payload)
SELECT (left(holdfast.first_id(now())::text, 14) || '7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
    n, n, n, 1, 3, 'demo', '{}'
FROM generate_series(1, $MANY) AS n;
INSERT INTO holdfast.ready (id, rank, lane, attempt, flags, late)
SELECT id, rank, lane, 0, 0, false FROM holdfast.task WHERE rank > $MANY * 0.2;
INSERT INTO holdfast.done (id, finished_at, started_at, state, attempt, worker, flags, ended)
SELECT id, rank, rank, (CASE WHEN rank % 1000 = 0 THEN 'dead_letter' ELSE 'completed' END)
::holdfast.state, 1, 1, 0, 'completed' FROM holdfast.task WHERE rank <= $MANY * 0.2;
INSERT INTO holdfast.tally
SELECT 'ready', lane, count(*) FROM holdfast.ready GROUP BY lane
UNION ALL SELECT state::text, 0, count(*) FROM holdfast.done GROUP BY state;
""".replace("$MANY", str(MANY))


on_both_versions = pytest.mark.parametrize("database", ["postgres", "postgres16"], indirect=True)
"""Where it is the planner who decides."""


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    server: PostgresServer = request.getfixturevalue(getattr(request, "param", "postgres"))
    name = f"growth_{secrets.token_hex(6)}"
    yield server.create_database(name)
    server.drop_database(name)


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(database) as store:
        yield store


@pytest.fixture
async def db(database: str) -> AsyncIterator[Database]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


async def pages(db: Database, sql: str, *values: object) -> int:
    """How many pages a statement looks at, with everything that it calls. It runs twice: the first
    time the catalogue is read, for its plans.
    """
    await db.fetch(sql, *values)
    rows = await db.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", *values)
    plan = json.loads(rows[0][0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


class Watched:
    """A connection that counts the pages it looks at."""

    def __init__(self, db: Database) -> None:
        self.pages = 0
        self._db = db

    async def fetch(self, sql: str, *values: object) -> list[asyncpg.Record]:
        self.pages += await pages(self._db, sql, *values)
        return await self._db.fetch(sql, *values)

    async def fetchval(self, sql: str, *values: object) -> object:
        self.pages += await pages(self._db, sql, *values)
        return await self._db.fetchval(sql, *values)


@pytest.mark.timeout(240)
async def test_no_verb_walks_a_deep_backlog(store: PostgresStore, db: Database) -> None:
    await db.execute(FILL, timeout=200)
    sql = queries("holdfast")
    first = await db.fetch("SELECT id::text FROM holdfast.ready ORDER BY rank LIMIT 10")
    ids = [row[0] for row in first]

    claim = await pages(db, sql["claim"], "w", None, [], 10, None)
    save = await pages(db, sql["save"], "w", ids, [1] * 10, [b"null"] * 10, *[None] * 14)
    numbers = await pages(db, sql["numbers"], None)
    ahead = await pages(db, sql["ahead"], "default", MANY // 2, ids[0], 1000)
    ended, waits = [
        await db.fetchval("SELECT id::text FROM holdfast.task WHERE rank = $1", int(MANY * share))
        for share in (0.1, 0.200_1)
    ]
    lists: dict[object, int] = {}
    async with db.transaction():
        await db.execute(sql["pin"])
        for states, last, oldest_first in product(
            (None, frozenset({State.DEAD_LETTER}), frozenset({State.COMPLETED})),
            (None, TaskId(ended)),
            (False, True),
        ):
            watched = Watched(db)
            asked = Listing(sql, TaskFilter(states=states), 10, last, oldest_first)
            assert await asked.rows(watched)  # type: ignore[arg-type]
            lists[states, last, oldest_first] = watched.pages
        for order in (Order.LAST_ENDED, Order.FIRST_ENDED):
            watched = Watched(db)
            dead = TaskFilter(states=frozenset({State.DEAD_LETTER}))
            assert await Ends(watched, sql, dead, 10, None, order).rows()  # type: ignore[arg-type]
            lists[order] = watched.pages
        ends = {}
        middle = Edge(TaskId(ended), as_time(int(MANY * 0.1)))
        for edge, order in product((None, middle), (Order.LAST_ENDED, Order.FIRST_ENDED)):
            watched = Watched(db)
            asked_ends = Ends(watched, sql, DONE, 10, edge, order)  # type: ignore[arg-type]
            found = [row["finished_at"] for row in await asked_ends.rows()]
            assert found == sorted(found, reverse=order is Order.LAST_ENDED)
            assert len(found) == 10
            if edge is not None:
                step = 1 if order.is_ascending else -1
                assert found == [int(MANY * 0.1) + step * n for n in range(1, 11)]
            ends[edge, order] = watched.pages
        deep = {}
        for last, oldest_first in product((None, TaskId(waits)), (False, True)):
            watched = Watched(db)
            asked = Listing(sql, QUEUED, 10, last, oldest_first)
            assert len(await asked.rows(watched)) == 10  # type: ignore[arg-type]
            deep[last, oldest_first] = watched.pages

    await db.execute("ANALYZE holdfast.task, holdfast.done, holdfast.ready")
    views = {
        which: await pages(db, f"SELECT * FROM holdfast.tasks WHERE {which} LIMIT 10")
        for which in ("state = 'dead_letter'", "state = 'running'", f"id = '{ids[-1]}'")
    }

    # The ready table alone has more than 6,000 pages.
    assert claim < 2000
    assert save < 2000
    assert numbers < 3000
    assert ahead < 2000
    assert max(lists.values()) < 2000, lists
    # To sort all that completed would be some 800,000, with the tasks that belong to them.
    assert max(ends.values()) < 60_000, ends
    # What waits is looked at if it must be; the history is not, which would be 800,000.
    assert deep[None, False] < 2000, deep
    assert max(deep.values()) < 40_000, deep
    assert max(views.values()) < 1000, views


async def drained(store: PostgresStore, worker: WorkerId, at_a_time: int) -> int:
    number = 0
    while claims := (
        await store.claim(worker, queues=None, capabilities=frozenset(), limit=at_a_time)
    ).claims:
        assert not await store.save([success(claim) for claim in claims])
        number += len(claims)
    return number


@on_both_versions
async def test_an_old_snapshot_does_not_make_claims_walk_over_what_was_taken(
    store: PostgresStore, database: str, db: Database
) -> None:
    me = worker_info()
    await store.register(me)
    await store.add(new_tasks(20_000), idempotency_window=WINDOW)

    async def take(number: int) -> None:
        found = await store.claim(me.id, queues=None, capabilities=frozenset(), limit=number)
        await store.save([success(claim) for claim in found.claims])

    async def the_floor_rose() -> bool:
        await take(1)
        active = await db.fetchval("SELECT active FROM holdfast.floor")
        left = await db.fetchval("SELECT min(rank) FROM holdfast.ready WHERE NOT late")
        above = "SELECT count(*) FROM holdfast.task WHERE rank >= $1 AND rank < $2"
        return int(await db.fetchval(above, active, left)) < 800

    pin = await asyncpg.connect(database)
    async with pin.transaction(isolation="repeatable_read"):
        await pin.fetch("SELECT count(*) FROM holdfast.lane")
        for _ in range(24):
            await take(750)
        await eventually(the_floor_rose, within=60)  # with time and with claims

        walked = await pages(db, queries("holdfast")["claim"], me.id, None, [], 1, None)
    await pin.close()

    # 18,000 rows were taken; their versions are still there, on 150 pages and as many of the index.
    assert walked < 1_000
    assert list(await store.check()) == []


async def test_what_comes_in_below_the_floor_is_still_first_in_line(
    store: PostgresStore, database: str, db: Database
) -> None:
    me = worker_info()
    await store.register(me)
    await store.add(new_tasks(400), idempotency_window=WINDOW)
    sleeper = await asyncpg.connect(database)
    slow = sleeper.transaction()
    await slow.start()
    early = new_task()
    await sleeper.fetch(
        "SELECT holdfast.add($1::json)",
        f'[{{"id": "{early.id}", "name": "demo", "payload": "{{}}", "head_start": 1800000000}}]',
    )
    (first, *_) = (await store.claim(me.id, queues=None, capabilities=frozenset(), limit=10)).claims
    for _ in range(12):
        await store.claim(me.id, queues=None, capabilities=frozenset(), limit=10)
        await asyncio.sleep(0.045)

    await slow.commit()
    await sleeper.close()
    await store.save([release(first)])
    claims = (await store.claim(me.id, queues=None, capabilities=frozenset(), limit=3)).claims

    assert [claim.task_id for claim in claims[:2]] == [early.id, first.task_id]
    assert list(await store.check()) == []


@on_both_versions
async def test_settling_goes_from_ids_to_rows_whatever_the_statistics_say(
    store: PostgresStore, db: Database
) -> None:
    me = worker_info()
    await store.register(me)
    for settled in (True, False):
        await store.add(new_tasks(300), idempotency_window=WINDOW)
        claimed = await store.claim(me.id, queues=None, capabilities=frozenset(), limit=300)
        if settled:
            await store.save([success(claim) for claim in claimed.claims])
            # Pages, and no row: a planner that believes it begins with the table.
            await db.execute("VACUUM (ANALYZE, TRUNCATE off) holdfast.run")
    given = {"ids": "$1::uuid[]", "attempts": "$2::integer[]", "results": "$3::bytea[]", "me": "1"}
    source = await db.fetchval(
        "SELECT prosrc FROM pg_proc WHERE oid = 'holdfast.complete'::regproc"
    )
    chosen = source[source.index("WITH ended") : source.index("), gone AS")]
    for name, parameter in given.items():
        chosen = re.sub(rf"(?<!\.)\b{name}\b(?! ANY)", parameter, chosen)

    async with db.transaction():
        await db.execute(queries("holdfast")["pin"])
        await db.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        rows = await db.fetch(
            f"EXPLAIN (ANALYZE, FORMAT TEXT) {chosen}) SELECT count(*) FROM ended",
            [claim.task_id for claim in claimed.claims],
            [1] * 300,
            [b"null"] * 300,
        )
    plan = "\n".join(row[0] for row in rows)

    assert "Index Scan using run_pkey" in plan
    assert "(actual" in plan
    assert "Removed by Join Filter" not in plan, plan


@pytest.mark.parametrize(
    ("database", "is_analysed"),
    [("postgres", False), ("postgres", True), ("postgres16", True)],
    indirect=["database"],
)
async def test_one_that_leaves_a_gate_finds_the_next_however_many_wait(
    store: PostgresStore, db: Database, is_analysed: bool
) -> None:
    """The tables are small when a plan is made for them, or known to be large."""
    me = worker_info()
    await store.register(me)
    gate = (Gate(GateKind.LIMIT, "one", 1),)
    for gates in (gate, (Gate(GateKind.LIMIT, "other", 2), *gate)):
        await store.add(new_tasks(10_000, gates=gates), idempotency_window=WINDOW)
    await store.add(new_tasks(10_000, lock="doc"), idempotency_window=WINDOW)
    if is_analysed:
        await db.execute("ANALYZE holdfast.gate, holdfast.blocked, holdfast.ready")
    text = queries("holdfast")["save"]
    looked_at = []

    for _ in range(3):
        found = await store.claim(me.id, queues=None, capabilities=frozenset(), limit=2)
        ids = [claim.task_id for claim in found.claims]
        given = (me.id, ids, None, [b"null"] * len(ids), *[None] * 14)
        async with db.transaction():  # the plan of a transaction that is rolled back
            rows = await db.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", *given)
            plan = json.loads(rows[0][0])[0]["Plan"]
        looked_at.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        assert len(ids) == 2

    # The line alone has some 300 pages. The first call makes its plans.
    assert min(looked_at) < 400, looked_at
    assert list(await store.check()) == []
