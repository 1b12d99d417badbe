"""Counted from outside: as many starts as tasks."""

from __future__ import annotations

import signal

import pytest
from tests.acceptance.conftest import MakeStage
from tests.acceptance.stage import ids, until

pytestmark = pytest.mark.acceptance

TASKS = 3_000


def test_every_task_starts_once(make_stage: MakeStage) -> None:
    stage = make_stage()
    handles = stage.app.submit_many([stage.shop.noop.call(n) for n in range(TASKS // 2)])

    workers = [stage.worker("--processes", "2", "-c", "10", ready=False) for _ in range(2)]
    until(lambda: len(stage.app.workers()) == 4, within=60)
    # More than one process could do before the others look for work.
    handles += stage.app.submit_many([stage.shop.nap.call(0.05)] * (TASKS // 2))
    until(lambda: not stage.unfinished(), within=60)
    for worker in workers:
        worker.signal(signal.SIGTERM)

    assert [worker.wait() for worker in workers] == [0, 0]
    starts = stage.log.starts()
    assert len(starts) == TASKS
    assert sorted(start.task_id for start in starts) == sorted(ids(handles))
    assert stage.broken(ids(handles)) == []
    assert len({start.pid for start in starts}) > 1
