"""An async body that blocks its worker's loop: the others do not wait for it."""

from __future__ import annotations

import time

import pytest
from tests.acceptance.conftest import MakeStage
from tests.acceptance.stage import until

from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Reason, State

pytestmark = pytest.mark.acceptance

SHORT = {"lease": "2s", "heartbeat": "0.5s", "sweep": "0.5s", "poll": "0.2s"}
DONE = frozenset({State.COMPLETED})


def test_what_a_blocked_worker_has_not_started_is_done_by_others(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT)
    # It claims far ahead, as these are short, and the blocker comes in the middle of them.
    calls = [stage.shop.noop.call(n) for n in range(2000)]
    stage.app.submit_many(calls[:1000])
    blocker = stage.shop.block.submit(28.0)
    stage.app.submit_many(calls[1000:])
    blocked = stage.worker("-c", "2")
    until(lambda: stage.begun(blocker.id))
    began = time.monotonic()
    stage.worker("-c", "2")

    until(lambda: blocker.id in {worker.blocked_by for worker in stage.app.workers()})
    until(lambda: stage.app.count(TaskFilter(name="noop", states=DONE), limit=5000) == 2000)
    until(lambda: blocker.status() is State.DEAD_LETTER)
    took = time.monotonic() - began

    assert took < 27.0, "they waited for the blocker"
    assert blocker.task().reason is Reason.TIMEOUT
    until(lambda: "worker.loop_blocked" in blocked.said())
    assert blocker.id in blocked.said()
    assert len(stage.log.starts()) == 2001
    assert stage.broken([blocker.id]) == []


def test_a_worker_whose_loop_is_blocked_for_ever_is_replaced(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT)
    worker = stage.worker("-c", "3")
    [process] = worker.children()
    neighbour = stage.shop.nap.submit(2.0)
    until(lambda: stage.begun(neighbour.id))
    blocker = stage.shop.block.submit(600.0)
    until(lambda: stage.begun(blocker.id))

    until(lambda: process not in worker.children())
    until(lambda: neighbour.status() is State.COMPLETED)

    assert blocker.task().reason is Reason.TIMEOUT
    assert [a.ended for a in blocker.history().attempts] == [AttemptEnd.TIMEOUT]
    task = neighbour.task()
    assert (task.charged, task.crash_count) == (0, 0)
    assert [a.ended for a in neighbour.history().attempts] == [
        AttemptEnd.RELEASED,
        AttemptEnd.COMPLETED,
    ]
    assert "worker.replaced" in worker.said()
    assert stage.broken([blocker.id, neighbour.id]) == []


def test_a_worker_whose_every_slot_is_stuck_is_replaced(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT)
    worker = stage.worker("-c", "1")
    [process] = worker.children()
    stuck = stage.shop.alone_thread.submit("k", 600.0)
    waiting = stage.shop.noop.submit(1)

    until(lambda: process not in worker.children())
    until(lambda: stuck.status() is State.COMPLETED)
    until(lambda: waiting.status() is State.COMPLETED)

    ends = [attempt.ended for attempt in stuck.history().attempts]
    assert ends == [AttemptEnd.TIMEOUT, AttemptEnd.COMPLETED]
    assert not list(stage.folder.glob("*.overlap"))
