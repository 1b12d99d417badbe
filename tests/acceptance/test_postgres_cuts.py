"""A connection cut at the commit: whether it happened is found out, never guessed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.acceptance import ordeals
from tests.acceptance.conftest import MakeStage, on_postgres
from tests.acceptance.load import SETTINGS, Trial
from tests.acceptance.ordeals import CUTS
from tests.acceptance.stage import Stage, ids, until
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.proxy import Proxy

from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.errors import StoreUnavailable

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180), on_postgres]

HOT = {"claim": r"\bclaim", "save": r"\bs(ave|ettle)"}


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with Proxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
def through(make_stage: MakeStage, postgres: PostgresServer, proxy: Proxy) -> Iterator[Trial]:
    """Workers reach the store through the proxy; the test itself does not."""
    stage = make_stage(**SETTINGS)
    with Trial(stage, workers=1, url=_by_way_of(proxy, postgres, stage)) as trial:
        yield trial


def _by_way_of(proxy: Proxy, server: PostgresServer, stage: Stage) -> str:
    return stage.environment["HOLDFAST_URL"].replace(f":{server.port}/", f":{proxy.port}/")


@pytest.mark.parametrize("verb", HOT)
def test_a_workers_connection_cut_at_the_commit(through: Trial, proxy: Proxy, verb: str) -> None:
    for fate in 3 * CUTS:
        ambush = proxy.ambush(HOT[verb], fate)
        assert ambush.sprung.wait(10)
        through.progress(10)

    through.end()


def test_a_storm_of_cuts_and_delays_of_200_ms(through: Trial, proxy: Proxy) -> None:
    ordeals.cut(through, proxy, tasks=600, seed=5)


def test_every_answer_200_ms_late(through: Trial, proxy: Proxy) -> None:
    proxy.latency = 0.2

    through.progress(200)

    through.end()


def test_a_network_that_stalls_for_a_while(through: Trial, proxy: Proxy) -> None:
    ordeals.stall(through, proxy, seconds=3.0)


def test_a_submit_cut_at_the_commit_is_made_once_or_refused(
    make_stage: MakeStage, postgres: PostgresServer, proxy: Proxy
) -> None:
    stage = make_stage()
    elsewhere = Stage(stage.folder, url=_by_way_of(proxy, postgres, stage))
    acknowledged: list[str] = []
    try:
        for n, fate in enumerate(5 * CUTS):
            ambush = proxy.ambush(r"\b(add|submit)", fate)
            order = elsewhere.shop.noop.options(idempotency_key=f"order-{n}")
            acknowledged.append(until(partial(_acknowledged, order)))
            assert ambush.sprung.is_set()
    finally:
        elsewhere.close()

    assert len(set(acknowledged)) == 20
    assert stage.app.count(TaskFilter()) == 20
    assert stage.broken(acknowledged, finished=False) == []


def _acknowledged(order: Any) -> str:
    """The id of the task; empty if the store did not answer."""
    try:
        return str(order.submit(1).id)
    except StoreUnavailable:
        return ""


def test_a_transaction_cut_at_its_commit_has_its_effect_once(
    make_stage: MakeStage, postgres: PostgresServer, proxy: Proxy
) -> None:
    stage = make_stage(**SETTINGS)
    database = stage.environment["HOLDFAST_URL"].rpartition("/")[2]
    postgres.sql("CREATE TABLE effect (n int)", database=database)
    stage.worker("-c", "2", environment={"HOLDFAST_URL": _by_way_of(proxy, postgres, stage)})

    handles = []
    for n, fate in enumerate(2 * CUTS):
        ambush = proxy.ambush("^COMMIT", fate)
        handles.append(stage.shop.effect.submit(n))
        assert ambush.sprung.wait(10)
    until(lambda: not stage.unfinished())

    rows = postgres.sql("SELECT n FROM effect ORDER BY n", database=database)
    assert rows.split() == ["0", "1", "2", "3", "4", "5", "6", "7"]
    assert {handle.status() for handle in handles} == {State.COMPLETED}
    assert stage.broken(ids(handles)) == []
