"""Leaving in good order: SIGTERM drains, and nothing is charged for it.

A second one hurries, a third one kills: `integration/processes/test_supervisor.py`.
"""

from __future__ import annotations

import signal
from functools import partial

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


def test_what_outlasts_the_drain_is_handed_back_uncharged(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT, drain="0.5s")
    first = stage.worker("-c", "3")
    handles = []
    for task in (stage.shop.child, stage.shop.patient, stage.shop.nap):
        handles.append(task.submit(3.0))
        until(partial(stage.begun, handles[-1].id))

    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    left = [handle.task() for handle in handles]
    stage.worker("-c", "3")
    until(lambda: not stage.unfinished())

    assert [(t.state, t.charged, t.crash_count) for t in left] == [(State.QUEUED, 0, 0)] * 3
    for handle in handles:
        assert handle.status() is State.COMPLETED
        assert [(a.cause, a.ended, a.charged) for a in handle.history().attempts] == [
            (Cause.SUBMITTED, AttemptEnd.RELEASED, False),
            (Cause.RELEASED, AttemptEnd.COMPLETED, False),
        ]
    assert stage.broken([handle.id for handle in handles]) == []


def test_a_deploy_under_load_starts_nothing_twice_without_cause(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT, drain="0.3s")
    first = stage.worker("--processes", "2", "-c", "4")
    calls = [stage.shop.nap.call(0.5 if n % 2 else 0.01) for n in range(200)]
    handles = stage.app.submit_many(calls)
    until(lambda: stage.finished() > 10)

    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    stage.worker("--processes", "2", "-c", "40")
    until(lambda: not stage.unfinished())

    pictures = stage.pictures()
    causes = {a.cause for p in pictures for a in p.history.attempts}
    assert causes <= {Cause.SUBMITTED, Cause.RELEASED}
    assert {p.task.charged for p in pictures} == {0}
    assert {p.task.state for p in pictures} == {State.COMPLETED}
    assert stage.broken([handle.id for handle in handles]) == []
