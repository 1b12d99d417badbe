"""The proxy breaks what it is told to break, at the instant it is told, and nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import asyncpg
import pytest

from holdfast.testing.eventually import eventually
from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.proxy import Fate, Proxy

INSERT = "INSERT INTO t SELECT $1 RETURNING n"


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with Proxy(postgres.port, records=True) as proxy:
        yield proxy


@pytest.fixture
async def url(postgres: PostgresServer, proxy: Proxy, fresh_database: str) -> str:
    """A database with an empty table t(n int), seen through the proxy."""
    postgres.sql("CREATE TABLE t (n int)", database=fresh_database.rpartition("/")[2])
    return fresh_database.replace(f":{postgres.port}/", f":{proxy.port}/")


async def count(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        number: int = await connection.fetchval("SELECT count(*) FROM t")
        return number
    finally:
        await connection.close()


async def test_it_passes_on_what_is_asked_and_answered(proxy: Proxy, url: str) -> None:
    connection = await asyncpg.connect(url)

    big = await connection.fetchval("SELECT repeat('x', 3000000)")
    await connection.copy_records_to_table(
        "t", records=[(n,) for n in range(50_000)], columns=["n"]
    )

    assert len(big) == 3_000_000
    assert await connection.fetchval("SELECT count(*) FROM t") == 50_000
    assert proxy.seen is not None
    assert proxy.seen.count("SELECT count(*) FROM t") == 1
    await connection.close()


@pytest.mark.parametrize(
    ("fate", "happened"),
    [(Fate.LOSE_REQUEST, 0), (Fate.LOSE_ANSWER, 1), (Fate.CUT_ANSWER, 1)],
    ids=lambda value: value.name if isinstance(value, Fate) else "",
)
async def test_a_cut_says_nothing_but_the_server_knows(
    proxy: Proxy, url: str, fate: Fate, happened: int
) -> None:
    connection = await asyncpg.connect(url)
    ambush = proxy.ambush("INSERT INTO t", fate)

    with pytest.raises((asyncpg.PostgresConnectionError, ConnectionError)):
        await connection.fetchval(INSERT, 7)

    assert ambush.sprung.is_set()
    assert await count(url) == happened


async def test_a_late_request_happens_when_its_client_has_given_up(proxy: Proxy, url: str) -> None:
    connection = await asyncpg.connect(url)
    proxy.slowness = 0.3
    proxy.ambush("INSERT INTO t", Fate.LATE_REQUEST)

    with pytest.raises((asyncpg.PostgresConnectionError, ConnectionError)):
        await connection.fetchval(INSERT, 7)

    assert await count(url) == 0
    assert await eventually(lambda: count(url)) == 1


@pytest.mark.parametrize("sql", [INSERT, "INSERT INTO t VALUES (7)"], ids=["prepared", "simple"])
async def test_an_ambush_springs_on_the_commit_and_only_once(
    proxy: Proxy, url: str, sql: str
) -> None:
    connection = await asyncpg.connect(url)
    ambush = proxy.ambush("^COMMIT", Fate.LOSE_ANSWER)
    arguments = [7] if "$1" in sql else []

    await connection.execute("BEGIN")
    await connection.execute(sql, *arguments)
    with pytest.raises((asyncpg.PostgresConnectionError, ConnectionError)):
        await connection.execute("COMMIT")

    assert ambush.left == 0
    other = await asyncpg.connect(url)
    async with other.transaction():
        await other.execute(sql, *arguments)
    await other.close()
    assert await count(url) == 2


async def test_a_stalled_answer_comes_when_it_is_released(proxy: Proxy, url: str) -> None:
    connection = await asyncpg.connect(url)
    ambush = proxy.ambush("INSERT INTO t", Fate.STALL)

    asking = asyncio.ensure_future(connection.fetchval(INSERT, 7))
    await asyncio.to_thread(ambush.sprung.wait, 5)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(asking), 0.2)
    assert await count(url) == 1  # others are not held up
    proxy.resume()

    assert await asking == 7
    await connection.close()


async def test_a_delayed_answer_is_late(proxy: Proxy, url: str) -> None:
    connection = await asyncpg.connect(url)
    proxy.ambush("INSERT INTO t", Fate.DELAY)

    began = time.monotonic()
    assert await connection.fetchval(INSERT, 7) == 7

    assert time.monotonic() - began >= proxy.slowness
    await connection.close()


async def test_nothing_passes_while_it_stalls(proxy: Proxy, url: str) -> None:
    connection = await asyncpg.connect(url)

    proxy.stall()
    asking = asyncio.ensure_future(connection.fetchval(INSERT, 7))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(asking), 0.2)
    proxy.resume()

    assert await asking == 7
    await connection.close()


async def test_cut_breaks_every_connection_and_new_ones_work(proxy: Proxy, url: str) -> None:
    connections = [await asyncpg.connect(url) for _ in range(3)]

    assert proxy.cut() == 3

    for connection in connections:
        with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError)):
            await connection.fetchval("SELECT 1")
    assert await count(url) == 0


async def test_a_rule_decides_for_every_request(proxy: Proxy, url: str) -> None:
    proxy.rule = lambda sql: Fate.LOSE_REQUEST if "VALUES" in sql else None
    connection = await asyncpg.connect(url)

    with pytest.raises((asyncpg.PostgresConnectionError, ConnectionError)):
        await connection.execute("INSERT INTO t VALUES (1)")

    assert await count(url) == 0


async def test_a_server_that_is_away_looks_like_a_closed_connection(
    postgres: PostgresServer,
) -> None:
    with Proxy(1) as proxy, pytest.raises((OSError, asyncpg.PostgresConnectionError)):
        await asyncpg.connect(postgres.url(port=proxy.port))
