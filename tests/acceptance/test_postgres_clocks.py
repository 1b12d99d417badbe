"""Only the server's clock counts: workers and submitters whose clocks are hours off do no harm."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from tests.acceptance.conftest import MakeStage, on_postgres
from tests.acceptance.stage import ids, overload, until
from tests.kit.servers.faketime import clock_off_by

from holdfast.core.task import AttemptEnd, Cause

pytestmark = [pytest.mark.acceptance, on_postgres]

OFF = {"ahead": "+1h", "behind": "-1h"}
SUBMIT = """
handles = [shop.noop.options(delay=0.5 + n / 10).submit(n) for n in range(10)]
handles += app.submit_many([shop.noop.call(n) for n in range(10)])
for handle in handles: print(handle.id)
app.close()
"""
LATEST = 2.0


def test_workers_an_hour_off_either_way_start_nothing_twice_and_nothing_late(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(lease="2s", heartbeat="0.5s", sweep="0.5s", poll="0.5s")
    for queue, offset in OFF.items():
        queues = ("-q", "default", "-q", queue)
        stage.worker("-c", "6", *queues, environment=clock_off_by(offset), ready=False)
    stage.worker("-c", "6", ready=False)
    until(lambda: len(stage.app.workers()) == 3)
    shop = stage.shop

    # On each of the wrong ones, for more than two leases.
    long = [shop.nap.options(queue=queue).submit(5.0) for queue in OFF for _ in range(3)]
    delayed = [shop.noop.options(delay=0.5 + n / 10).submit(n) for n in range(20)]
    retried = stage.app.submit_many([shop.work.call(0.0, fail_first=True) for _ in range(20)])
    until(lambda: not stage.unfinished(), within=60)

    assert stage.broken(ids([*long, *delayed, *retried])) == []
    starts = stage.log.starts()
    assert len({start.pid for start in starts}) == 3
    attempts = [a for picture in stage.pictures() for a in picture.history.attempts]
    begun = [a for a in attempts if a.ended is not AttemptEnd.RELEASED]  # handed back unstarted
    assert len(starts) == len(begun)
    assert {a.cause for a in begun} <= {Cause.SUBMITTED, Cause.RETRY, Cause.RELEASED}
    for handle in delayed:
        task = handle.task()
        assert task.started_at is not None
        assert timedelta(0) <= task.started_at - task.run_at < _latest()
    for handle in retried:
        for first, second in pairwise(handle.history().attempts):
            if first.ended is AttemptEnd.ERROR:
                assert first.ended_at is not None
                assert second.cause is Cause.RETRY
                assert timedelta(seconds=0.2) <= second.started_at - first.ended_at < _latest()
    assert any(a.ended is AttemptEnd.ERROR for a in attempts)


def test_submitters_an_hour_off_either_way_are_served_by_the_servers_clock(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(lease="2s", heartbeat="0.5s", sweep="0.5s", poll="0.5s")
    stage.worker("-c", "4")

    submitters = [stage.python(SUBMIT, environment=clock_off_by(off)) for off in OFF.values()]
    acknowledged = [line for each in submitters for line in each.communicate()[0].split()]
    until(lambda: not stage.unfinished())

    assert len(acknowledged) == 40
    assert stage.broken(acknowledged) == []
    assert len(stage.log.starts()) == 40
    for task, _ in stage.pictures():
        assert task.started_at is not None
        assert timedelta(0) <= task.started_at - max(task.run_at, task.created_at) < _latest()


def _latest() -> timedelta:
    return timedelta(seconds=LATEST * overload())
