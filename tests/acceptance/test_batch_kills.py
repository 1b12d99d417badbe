"""kill -9 in the middle of a batch: what had not ended runs again, what had completed does not."""

from __future__ import annotations

import signal

import pytest
from tests.acceptance.conftest import on_every_store
from tests.acceptance.stage import Stage, send, until

from holdfast.core.task import AttemptEnd, Cause

pytestmark = pytest.mark.acceptance


@on_every_store
def test_members_of_a_killed_batch_run_again_and_completed_ones_do_not(stage: Stage) -> None:
    worker = stage.worker("-c", "2")
    handles = stage.app.submit_many([stage.shop.bulk.call(n) for n in range(20)])
    odd = handles[1::2]
    until(lambda: any(start.attempt == 2 for start in stage.log.starts()), within=60)
    begun = {start.task_id for start in stage.log.starts() if start.attempt == 2}

    for pid in worker.children():
        send(pid, signal.SIGKILL)
    until(lambda: not stage.unfinished(), within=120)

    assert [handle.result() for handle in handles] == list(range(20))
    assert begun <= {handle.id for handle in odd}
    for handle in handles[::2]:
        assert [attempt.ended for attempt in handle.history().attempts] == [AttemptEnd.COMPLETED]
    for handle in odd:
        causes = [attempt.cause for attempt in handle.history().attempts]
        assert causes[:2] == [Cause.SUBMITTED, Cause.RETRY]
        if handle.id in begun:
            assert causes[2] is Cause.WORKER_LOST
    assert stage.broken([handle.id for handle in handles]) == []
