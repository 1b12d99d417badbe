"""pgbouncer and a wrong clock, fetched from Debian where the system has none."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import pytest

from holdfast.testing.servers import faketime
from holdfast.testing.servers.account import ServerError
from holdfast.testing.servers.pgbouncer import PgBouncer
from holdfast.testing.servers.postgres import PostgresServer

TELL = """
import time, threading
began = time.perf_counter()
time.sleep(0.1); threading.Event().wait(0.1)
print(time.time(), time.monotonic(), time.perf_counter() - began)
"""


@pytest.mark.parametrize(("offset", "seconds"), [("+1h", 3600), ("-1h", -3600)])
def test_only_the_wall_clock_lies(offset: str, seconds: int) -> None:
    told = subprocess.run(
        [sys.executable, "-c", TELL],
        env=os.environ | faketime.clock_off_by(offset),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert float(told[0]) - time.time() == pytest.approx(seconds, abs=10)
    assert float(told[1]) == pytest.approx(time.monotonic(), abs=10)
    assert 0.2 <= float(told[2]) < 5  # it sleeps as long as it wants


async def test_clients_of_pgbouncer_share_a_server_connection(postgres: PostgresServer) -> None:
    with PgBouncer(postgres, size=1) as bouncer:
        clients = [await asyncpg.connect(bouncer.url(), statement_cache_size=0) for _ in range(3)]

        backends = {await client.fetchval("SELECT pg_backend_pid()") for client in clients}

        assert len(backends) == 1
        for client in clients:
            await client.close()


def test_without_apt_it_says_what_is_missing_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(faketime, "SYSTEM", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    with pytest.raises(ServerError, match=r"no apt-get here.*HOLDFAST_TEST_LIBFAKETIME"):
        faketime.clock_off_by("+1h")
