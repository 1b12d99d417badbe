"""A connection cut at the commit: whether it happened is found out, never guessed.

That of a handler's own transaction has `integration/transactions/test_lost_commits.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.acceptance import ordeals
from tests.acceptance.conftest import MakeStage, on_postgres
from tests.acceptance.load import SETTINGS, Trial
from tests.acceptance.ordeals import CUTS
from tests.acceptance.stage import Stage, until
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.proxy import Proxy

from holdfast.core.query import TaskFilter
from holdfast.errors import StoreUnavailable

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180), on_postgres]

HOT = (r"\bclaim", r"\bs(ave|ettle)")


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


def test_a_workers_connection_cut_at_the_commit_and_anywhere(through: Trial, proxy: Proxy) -> None:
    for verb in HOT:
        for fate in CUTS:
            ambush = proxy.ambush(verb, fate)
            assert ambush.sprung.wait(30)
            through.progress(10)
    ordeals.cut(through, proxy, tasks=300, seed=5)

    through.end()


def test_answers_200_ms_late_and_a_network_that_stalls_for_a_while(
    through: Trial, proxy: Proxy
) -> None:
    proxy.latency = 0.2
    through.progress(100)
    proxy.latency = 0.0
    ordeals.stall(through, proxy, seconds=3.0, times=1)

    through.end()


def test_a_submit_cut_at_the_commit_is_made_once_or_refused(
    make_stage: MakeStage, postgres: PostgresServer, proxy: Proxy
) -> None:
    stage = make_stage()
    elsewhere = Stage(stage.folder, url=_by_way_of(proxy, postgres, stage))
    acknowledged: list[str] = []
    try:
        for n, fate in enumerate(2 * CUTS):
            ambush = proxy.ambush(r"\b(add|submit)", fate)
            order = elsewhere.shop.noop.options(idempotency_key=f"order-{n}")
            acknowledged.append(until(partial(_acknowledged, order)))
            assert ambush.sprung.is_set()
    finally:
        elsewhere.close()

    assert len(set(acknowledged)) == 8
    assert stage.app.count(TaskFilter()) == 8
    assert stage.broken(acknowledged, finished=False) == []


def _acknowledged(order: Any) -> str:
    """The id of the task; empty if the store did not answer."""
    try:
        return str(order.submit(1).id)
    except StoreUnavailable:
        return ""
