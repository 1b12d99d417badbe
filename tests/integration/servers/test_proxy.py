"""The proxy breaks what it is told to break, at the instant it is told, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import asyncpg
import pytest
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.proxy import Fate, Proxy

from holdfast.testing.eventually import eventually

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
