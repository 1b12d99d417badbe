"""Leaving in good order: SIGTERM drains, a second one hurries, nothing is charged for it."""

from __future__ import annotations

import signal
import time

import pytest
from tests.acceptance.conftest import MakeStage
from tests.acceptance.stage import Stage, until

from holdfast.core.fleet import WorkerStatus
from holdfast.core.task import AttemptEnd, Cause, State

pytestmark = pytest.mark.acceptance

SHORT = {"lease": "2s", "heartbeat": "0.5s", "sweep": "0.5s", "poll": "0.5s"}


def test_sigterm_lets_running_work_end_and_takes_no_more(stage: Stage) -> None:
    worker = stage.worker("-c", "1")
    running = stage.shop.nap.submit(1.0)
    until(lambda: stage.begun(running.id))
    waiting = stage.shop.nap.submit(0.0)

    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert running.status() is State.COMPLETED
    assert waiting.status() is State.QUEUED
    assert waiting.task().charged == 0
    assert [w.status for w in stage.app.workers()] == [WorkerStatus.STOPPED]
    assert stage.broken([running.id, waiting.id], finished=False) == []


@pytest.mark.parametrize("executor", ["nap", "patient", "child"])
def test_what_outlasts_the_drain_is_handed_back_uncharged(
    make_stage: MakeStage, executor: str
) -> None:
    stage = make_stage(**SHORT, drain="0.5s")
    first = stage.worker("-c", "2")
    handle = getattr(stage.shop, executor).submit(2.5)
    until(lambda: stage.begun(handle.id))

    first.signal(signal.SIGTERM)
    assert first.wait(10) == 0
    left = handle.task()
    stage.worker("-c", "2")
    until(lambda: handle.status() is State.COMPLETED)

    attempts = handle.history().attempts
    assert (left.state, left.charged, left.crash_count) == (State.QUEUED, 0, 0)
    assert [(a.cause, a.ended, a.charged) for a in attempts] == [
        (Cause.SUBMITTED, AttemptEnd.RELEASED, False),
        (Cause.RELEASED, AttemptEnd.COMPLETED, False),
    ]
    assert stage.broken([handle.id]) == []


def test_a_second_sigterm_means_now(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT, drain="60s")
    worker = stage.worker("-c", "1")
    handle = stage.shop.nap.submit(60.0)
    until(lambda: stage.begun(handle.id))

    worker.signal(signal.SIGTERM)
    until(lambda: WorkerStatus.DRAINING in [w.status for w in stage.app.workers()])
    asked = time.monotonic()
    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert time.monotonic() - asked < 3.0
    task = handle.task()
    assert (task.state, task.charged, task.crash_count) == (State.QUEUED, 0, 0)
    assert [a.ended for a in handle.history().attempts] == [AttemptEnd.RELEASED]


def test_a_deploy_under_load_starts_nothing_twice_without_cause(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT, drain="0.3s")
    first = stage.worker("--processes", "2", "-c", "4")
    calls = [stage.shop.nap.call(0.5 if n % 2 else 0.01) for n in range(200)]
    handles = stage.app.submit_many(calls)
    until(lambda: stage.finished() > 10)

    first.signal(signal.SIGTERM)
    assert first.wait(10) == 0
    stage.worker("--processes", "2", "-c", "40")
    until(lambda: not stage.unfinished())

    pictures = stage.pictures()
    causes = {a.cause for p in pictures for a in p.history.attempts}
    assert causes <= {Cause.SUBMITTED, Cause.RELEASED}
    assert {p.task.charged for p in pictures} == {0}
    assert {p.task.state for p in pictures} == {State.COMPLETED}
    assert stage.broken([handle.id for handle in handles]) == []
