"""The test servers keep what their docstrings promise; everything on PostgreSQL stands on this."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest
from tests.kit.servers import binaries, processes
from tests.kit.servers.account import ServerError
from tests.kit.servers.postgres import PostgresServer


@pytest.mark.parametrize(("fixture", "version"), [("postgres", "18"), ("postgres16", "16")])
async def test_it_is_that_version_and_durable(
    request: pytest.FixtureRequest, fixture: str, version: str
) -> None:
    server: PostgresServer = request.getfixturevalue(fixture)

    connection = await asyncpg.connect(server.url())
    try:
        assert (await connection.fetchval("SHOW server_version")).split(".")[0] == version
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW synchronous_commit") == "on"
    finally:
        await connection.close()


def test_kill9_leaves_no_process_and_loses_no_commit(own_postgres: PostgresServer) -> None:
    own_postgres.sql("CREATE TABLE t AS SELECT 7 AS n")
    pid = own_postgres.pid
    assert pid is not None
    family = [pid, *processes.children(pid)]

    own_postgres.kill9()

    assert len(family) > 3
    assert not any(processes.is_alive(each) for each in family)
    assert not own_postgres.is_running
    assert own_postgres.start().sql("SELECT n FROM t") == "7"


def test_a_missing_wheel_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(binaries, "WHEEL", "no_such_wheel")

    with pytest.raises(ServerError, match="scripts/setup test"):
        binaries.postgres_programs(18, tmp_path)
