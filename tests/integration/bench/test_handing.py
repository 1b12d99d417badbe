"""The prototype that hands out ids through Redis claims what the product would."""

from __future__ import annotations

import asyncio

import pytest
from bench.handing.claimer import QUEUE
from bench.handing.measure import HANDED, PRODUCT, Case, Found, hired, text
from bench.resp import Line
from bench.servers import Postgres, Redis, ask

from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.redis import RedisServer

CASE = Case(claimers=4, batch=10, tasks=400)


@pytest.fixture
def server(postgres: PostgresServer) -> Postgres:
    return Postgres(postgres.url(), postgres.pid)


@pytest.fixture
def queue(own_redis: RedisServer) -> Redis:
    assert own_redis.pid is not None
    return Redis(own_redis.url, own_redis.pid)


def test_four_claimers_by_id_share_the_tasks_and_none_twice(server: Postgres, queue: Redis) -> None:
    with hired(HANDED, server, queue, 1_000) as crew:
        crew.work(CASE)

        running = ask(crew.url, "SELECT count(*) FROM holdfast.run")
        left = ask(crew.url, "SELECT count(*) FROM holdfast.ready")

    assert (running, left) == (400, 600)
    assert asyncio.run(_ask(queue.url, "ZCARD", QUEUE)) == 600


FIRST = """
SELECT count(*) FROM holdfast.done JOIN holdfast.task AS t USING (id)
WHERE t.rank < (SELECT min(rank) FROM holdfast.ready)
"""


@pytest.mark.parametrize("way", [HANDED, PRODUCT])
def test_either_way_takes_the_first_in_line(server: Postgres, queue: Redis, way: str) -> None:
    with hired(way, server, queue, 200) as crew:
        crew.work(Case(claimers=1, batch=7, tasks=70, settles=True))

        assert ask(crew.url, FIRST) == 70


def test_the_verdict_names_what_is_quicker_and_what_is_slower() -> None:
    won = Found(CASE, {PRODUCT: [100.0, 100.0], HANDED: [150.0, 150.0]}, _costs())
    lost = Found(Case(claimers=1, batch=1, tasks=10), {PRODUCT: [100.0], HANDED: [70.0]}, _costs())

    said = text([won, lost])

    assert "by a tenth or more: 4 claimers, 10 a claim (1.50).\n" in said
    assert "Slower by as much: 1 claimer, 1 a claim (0.70).\n" in said


def _costs() -> dict[str, list[float]]:
    return {PRODUCT: [10.0], HANDED: [9.0]}


async def _ask(url: str, *words: str) -> object:
    line = await Line.open(url)
    answer = await line.ask(*words)
    await line.close()
    return answer
