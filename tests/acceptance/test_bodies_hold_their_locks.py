"""A body that still runs still holds its lock: two of one key are never inside at once."""

from __future__ import annotations

import signal
from functools import partial
from typing import Any

import pytest
from tests.acceptance.conftest import MakeStage
from tests.acceptance.stage import Stage, until

from holdfast.core.task import AttemptEnd, Reason, State

pytestmark = pytest.mark.acceptance

SHORT = {"lease": "2s", "heartbeat": "0.5s", "sweep": "0.5s", "poll": "0.2s"}

EXECUTORS = ("process", "thread", "async")
"""What takes longest to begin comes first, so that all are inside at one time."""


def enter(stage: Stage, seconds: float, **options: Any) -> list[Any]:
    """Bodies that are inside and do not want to leave: one of each executor, with its own key."""
    inside = []
    for executor in EXECUTORS:
        task = getattr(stage.shop, f"alone_{executor}").options(**options)
        inside.append(task.submit(executor, seconds))
        until(partial(stage.begun, inside[-1].id))
    return inside


def follow(stage: Stage) -> list[Any]:
    """The next for each key."""
    return [getattr(stage.shop, f"alone_{name}").submit(name, 0.0) for name in EXECUTORS]


def ends(handles: list[Any]) -> list[list[AttemptEnd | None]]:
    return [[attempt.ended for attempt in handle.history().attempts] for handle in handles]


def assert_alone(stage: Stage, following: list[Any]) -> None:
    until(lambda: not stage.unfinished())
    assert not list(stage.folder.glob("*.overlap"))
    assert [handle.status() for handle in following] == [State.COMPLETED] * len(EXECUTORS)
    assert stage.broken() == []


def test_after_a_timeout(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT)
    stage.fleet(2, "-c", "6")
    first = enter(stage, 4.0)
    following = follow(stage)

    assert_alone(stage, following)

    assert ends(first) == [[AttemptEnd.TIMEOUT, AttemptEnd.COMPLETED]] * 3


def test_after_a_cancel(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT)
    stage.fleet(2, "-c", "6")
    first = enter(stage, 4.0, timeout="60s")
    following = follow(stage)

    for handle in first:
        handle.cancel()

    assert_alone(stage, following)
    assert [handle.task().reason for handle in first] == [Reason.CANCELLED] * 3
    assert ends(first) == [[AttemptEnd.CANCELLED]] * 3


def test_when_its_worker_leaves(make_stage: MakeStage) -> None:
    """The hand-back is seen by others when the process is gone, and charges nothing."""
    stage = make_stage(**SHORT, drain="0.3s")
    leaving = stage.worker("-c", "6")
    first = enter(stage, 600.0, timeout="60s")
    stage.worker("-c", "6")
    following = follow(stage)

    leaving.signal(signal.SIGTERM)
    assert leaving.wait() == 0

    assert_alone(stage, following)
    tasks = [handle.task() for handle in first]
    assert [(t.state, t.charged, t.crash_count) for t in tasks] == [(State.COMPLETED, 0, 0)] * 3
    assert ends(first) == [[AttemptEnd.RELEASED, AttemptEnd.COMPLETED]] * 3


def test_when_its_worker_lost_the_lease_and_came_back(make_stage: MakeStage) -> None:
    stage = make_stage(**SHORT)
    stage.worker("-c", "6")
    first = enter(stage, 6.0, timeout="60s")
    following = follow(stage)
    [worker] = stage.app.workers()

    assert stage.app.wait_for(stage.app.client.store.bury(worker.id, beats=None))

    assert_alone(stage, following)
    assert [handle.status() for handle in first] == [State.COMPLETED] * 3
