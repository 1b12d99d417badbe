"""The test servers keep what their docstrings promise; everything on PostgreSQL stands on this."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from holdfast.testing.eventually import eventually
from holdfast.testing.servers import binaries, processes
from holdfast.testing.servers.account import ServerError
from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.session import SharedServers

START_ONE = """
import sys, time
from holdfast.testing.servers.postgres import PostgresServer
server = PostgresServer().start()
print(server.pid, server.directory, flush=True)
time.sleep(600)
"""


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


async def test_it_refuses_a_wrong_password(postgres: PostgresServer) -> None:
    url = postgres.url().replace("postgres:", "postgres:wrong", 2)

    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(url)


def test_it_answers_on_its_unix_socket_too(postgres: PostgresServer) -> None:
    assert (postgres.directory / f".s.PGSQL.{postgres.port}").is_socket()
    assert "host=" in postgres.socket_url("shop")


async def test_a_fresh_database_is_empty_and_ones_own(
    postgres: PostgresServer, fresh_database: str
) -> None:
    connection = await asyncpg.connect(fresh_database)
    try:
        await connection.execute("CREATE TABLE t (n int)")
    finally:
        await connection.close()

    assert "test_" in fresh_database
    assert postgres.sql("SELECT to_regclass('t') IS NULL") == "t"


def test_a_fresh_schema_does_not_exist_yet(postgres: PostgresServer, fresh_schema: str) -> None:
    path, _, schema = fresh_schema.partition("?schema=")
    database = path.rpartition("/")[2]

    found = postgres.sql(
        f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'", database=database
    )

    assert schema.startswith("test_")
    assert found == "0"


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_after_a_restart_it_has_its_address_and_its_data(
    own_postgres: PostgresServer, mode: str
) -> None:
    url, pid = own_postgres.create_database("shop"), own_postgres.pid
    own_postgres.sql("CREATE TABLE t AS SELECT 7 AS n", database="shop")

    own_postgres.restart("fast" if mode == "fast" else "immediate")

    assert own_postgres.url("shop") == url
    assert own_postgres.pid != pid
    assert own_postgres.sql("SELECT n FROM t", database="shop") == "7"


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


async def test_terminated_backends_are_counted_and_gone(own_postgres: PostgresServer) -> None:
    connection = await asyncpg.connect(own_postgres.url())

    assert own_postgres.terminate_backends() == 1

    await eventually(connection.is_closed)
    assert own_postgres.is_running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_it_ends_with_the_process_that_started_it(number: signal.Signals) -> None:
    owner = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs on this loop
        [sys.executable, "-c", START_ONE], stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        assert processes.is_alive(int(pid))

        owner.send_signal(number)

    await eventually(lambda: not processes.is_alive(int(pid)), within=20)
    await eventually(lambda: not Path(folder).exists(), within=20)


def test_processes_of_one_session_share_a_server(tmp_path: Path) -> None:
    main = SharedServers.of_this_process()
    try:
        first = main.postgres(18)
        second = SharedServers.at(main.address).postgres(18)

        assert first.pid == second.pid
        assert first.url() == second.url()
    finally:
        main.close()
    assert first.pid is None
    assert not first.directory.exists()


def test_an_unused_session_leaves_nothing_behind() -> None:
    servers = SharedServers.of_this_process()

    servers.close()

    assert not Path(servers.address[0]).exists()


def test_settings_reach_the_server() -> None:
    with PostgresServer(settings={"fsync": "off", "max_connections": "17"}) as server:
        assert server.sql("SHOW fsync") == "off"
        assert server.sql("SHOW max_connections") == "17"


def test_a_server_that_does_not_start_says_why() -> None:
    server = PostgresServer(settings={"max_connections": "-3"})
    try:
        with pytest.raises(ServerError, match="max_connections"):
            server.start()
    finally:
        server.close()


def test_a_missing_wheel_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(binaries, "WHEEL", "no_such_wheel")

    with pytest.raises(ServerError, match="scripts/setup test"):
        binaries.postgres_programs(18, tmp_path)


def test_programs_of_ones_own_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("postgres", "initdb", "psql"):
        (tmp_path / name).touch()
    monkeypatch.setenv("HOLDFAST_TEST_PG_BIN", str(tmp_path))
    assert binaries.postgres_programs(16, tmp_path) == tmp_path

    (tmp_path / "psql").unlink()
    with pytest.raises(ServerError, match="lacks psql"):
        binaries.postgres_programs(16, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to drop")
def test_as_root_it_runs_as_nobody(own_postgres: PostgresServer) -> None:
    pid = own_postgres.pid

    owner = Path(f"/proc/{pid}").owner()

    assert owner == "nobody"
