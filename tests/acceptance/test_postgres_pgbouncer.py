"""Through pgbouncer in transaction mode: no session state, no wake-ups, the same promises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.acceptance.conftest import MakeStage, on_postgres
from tests.acceptance.load import SETTINGS, Trial
from tests.acceptance.stage import Stage, until
from tests.kit.servers.pgbouncer import PgBouncer
from tests.kit.servers.postgres import PostgresServer

pytestmark = [pytest.mark.acceptance, on_postgres]


@pytest.fixture
def bouncer(postgres: PostgresServer) -> Iterator[PgBouncer]:
    with PgBouncer(postgres, "transaction", size=3) as bouncer:
        yield bouncer


def _by_way_of(bouncer: PgBouncer, stage: Stage) -> str:
    database = stage.environment["HOLDFAST_URL"].rpartition("/")[2]
    return f"{bouncer.url(database)}?pgbouncer=true"


def test_workers_share_few_connections_and_outlive_a_pgbouncer_that_goes_away(
    make_stage: MakeStage, bouncer: PgBouncer
) -> None:
    stage = make_stage(**SETTINGS)

    with Trial(stage, url=_by_way_of(bouncer, stage)) as trial:
        trial.progress(200)
        bouncer.stop()
        bouncer.start()
        trial.progress(50)
        pictures = trial.end()

    assert len(pictures) >= 250


def test_everything_else_goes_through_it_too(make_stage: MakeStage, bouncer: PgBouncer) -> None:
    stage = make_stage(**SETTINGS)
    elsewhere = Stage(stage.folder, url=_by_way_of(bouncer, stage))
    try:
        elsewhere.worker("-c", "4")
        keyed = [elsewhere.shop.noop.options(idempotency_key="k").submit(7) for _ in range(5)]
        retried = elsewhere.shop.work.submit(0.0, fail_first=True)
        delayed = elsewhere.shop.noop.options(delay="0.5s").submit(1)

        assert {handle.result(timeout=60) for handle in keyed} == {7}
        assert retried.result(timeout=60) == 2
        assert delayed.result(timeout=60) == 1
        until(lambda: not elsewhere.unfinished())
        assert len({handle.id for handle in keyed}) == 1
        assert elsewhere.broken([keyed[0].id, retried.id, delayed.id]) == []
        assert "poll" in elsewhere.command("doctor", check=False).stdout
    finally:
        elsewhere.close()
