"""The ways to wake a worker go through the bench, a few tasks each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from bench.dispatch.measure import Found, Streamed, Use, one_at_a_time, stream
from bench.dispatch.text import targets, text
from bench.dispatch.ways import LISTEN, POLL_OFTEN, REDIS
from bench.environments import Unavailable
from bench.peers.contest import Drained
from bench.peers.match import DATABASE, Arena
from bench.servers import Postgres
from bench.size import QUICK

from holdfast.testing.servers.postgres import PostgresServer

SIZE = replace(QUICK, pick_ups=8, idle_seconds=0.5)


@pytest.fixture
def arena(postgres: PostgresServer) -> Iterator[Arena]:
    server = Postgres(postgres.url(), postgres.pid)
    yield Arena(server)
    server.drop(DATABASE)


def test_single_tasks_tell_how_long_they_waited_and_what_they_cost(arena: Arena) -> None:
    found = Found()

    one_at_a_time(LISTEN, arena, SIZE, found)

    assert len(found.waits) == SIZE.pick_ups
    assert min(found.waits) > 0
    (used,) = found.singles
    assert used.wal > 0
    assert used.at > 0


def test_a_worker_that_nobody_wakes_still_finds_its_tasks(arena: Arena) -> None:
    streamed = stream(POLL_OFTEN, arena, 200)

    assert streamed.per_second > 10
    assert streamed.wal_bytes > 0


def test_a_fallback_is_not_measured_in_place_of_what_was_meant(arena: Arena) -> None:
    pretends = replace(LISTEN, mode="redis")

    with pytest.raises(Unavailable, match="travel by listen, not by redis"):
        one_at_a_time(pretends, arena, SIZE, Found())


def test_redis_without_a_server_says_so(arena: Arena) -> None:
    with pytest.raises(Unavailable, match="there is no Redis here"):
        one_at_a_time(REDIS, arena, SIZE, Found())


def test_the_page_shows_the_ways_beside_each_other() -> None:
    quick, slow = _found(0.0015, 900.0), _found(0.0030, 600.0)

    said = text({REDIS.title: quick, LISTEN.title: slow}, {"polling": "no time"})

    assert "| pick-up with Redis, p50, ms | <= 2 | 1.50 | met |" in said
    assert "| stream, tasks/s, Redis / LISTEN | | 1.50 | |" in said
    assert "| polling | no time |" in said


def test_what_was_not_measured_is_not_called_met() -> None:
    verdicts = {target.verdict for target in targets({LISTEN.title: _found(0.003, 600.0)})}

    assert verdicts == {"not measured", ""}


def _found(wait: float, rate: float) -> Found:
    used = Use(1.0, 0.01, 0.001, 0.01, 1000)
    streamed = Streamed(per_second=rate, postgres_us=100, redis_us=5, wal_bytes=1000)
    drained = Drained(per_second=rate, worker_cpu_us=10, server_cpu_us=20, wal_bytes=1000)
    return Found([wait] * 10, [used], [used], [streamed], [drained])
