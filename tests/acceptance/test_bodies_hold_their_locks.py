"""A body that still runs still holds its lock: two of one key are never inside at once."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.acceptance.conftest import MakeStage
from tests.acceptance.stage import Stage, until

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Reason, State

pytestmark = pytest.mark.acceptance

SHORT = {"lease": "2s", "heartbeat": "0.5s", "sweep": "0.5s", "poll": "0.2s"}

every_executor = pytest.mark.parametrize("executor", ["async", "thread", "process"])


def first_and_next(stage: Stage, executor: str, seconds: float) -> tuple[Any, Any]:
    """A body that is inside and does not want to leave, and the next for its key."""
    task = getattr(stage.shop, f"alone_{executor}")
    first = task.submit("k", seconds)
    until(lambda: stage.begun(first.id))
    return first, task.submit("k", 0.0)


def was_alone(stage: Stage) -> bool:
    return not list(stage.folder.glob("*.overlap"))


@every_executor
def test_after_a_timeout(make_stage: MakeStage, executor: str) -> None:
    stage = make_stage(**SHORT)
    stage.worker("-c", "3")
    stage.worker("-c", "3")
    first, following = first_and_next(stage, executor, 4.0)

    until(lambda: first.status() in TERMINAL and following.status() in TERMINAL)

    assert was_alone(stage)
    ends = [attempt.ended for attempt in first.history().attempts]
    assert ends == [AttemptEnd.TIMEOUT, AttemptEnd.COMPLETED]
    assert following.status() is State.COMPLETED
    assert stage.broken([first.id, following.id]) == []


@every_executor
def test_after_a_cancel(make_stage: MakeStage, executor: str) -> None:
    stage = make_stage(**SHORT)
    stage.worker("-c", "3")
    stage.worker("-c", "3")
    first = getattr(stage.shop, f"alone_{executor}").options(timeout="60s").submit("k", 4.0)
    until(lambda: stage.begun(first.id))
    following = getattr(stage.shop, f"alone_{executor}").submit("k", 0.0)

    first.cancel()
    until(lambda: first.status() in TERMINAL and following.status() in TERMINAL)

    assert was_alone(stage)
    assert first.task().reason is Reason.CANCELLED
    assert [a.ended for a in first.history().attempts] == [AttemptEnd.CANCELLED]
    assert following.status() is State.COMPLETED
    assert stage.broken([first.id, following.id]) == []


@every_executor
def test_when_its_worker_leaves(make_stage: MakeStage, executor: str) -> None:
    """The hand-back is seen by others when the process is gone, and charges nothing."""
    stage = make_stage(**SHORT, drain="0.3s")
    leaving = stage.worker("-c", "3")
    first = getattr(stage.shop, f"alone_{executor}").options(timeout="60s").submit("k", 600.0)
    until(lambda: stage.begun(first.id))
    stage.worker("-c", "3")
    following = getattr(stage.shop, f"alone_{executor}").submit("k", 0.0)

    leaving.signal(signal.SIGTERM)
    assert leaving.wait(20) == 0
    until(lambda: first.status() in TERMINAL and following.status() in TERMINAL)

    assert was_alone(stage)
    task = first.task()
    assert (task.state, task.charged, task.crash_count) == (State.COMPLETED, 0, 0)
    assert [a.ended for a in first.history().attempts] == [
        AttemptEnd.RELEASED,
        AttemptEnd.COMPLETED,
    ]
    assert stage.broken([first.id, following.id]) == []


@every_executor
def test_when_its_worker_lost_the_lease_and_came_back(make_stage: MakeStage, executor: str) -> None:
    stage = make_stage(**SHORT)
    stage.worker("-c", "3")
    first = getattr(stage.shop, f"alone_{executor}").options(timeout="60s").submit("k", 6.0)
    until(lambda: stage.begun(first.id))
    following = getattr(stage.shop, f"alone_{executor}").submit("k", 0.0)
    [worker] = stage.app.workers()

    assert stage.app.wait_for(stage.app.client.store.bury(worker.id, beats=None))
    until(lambda: first.status() in TERMINAL and following.status() in TERMINAL)

    assert was_alone(stage)
    assert stage.app.count(TaskFilter(states=frozenset({State.COMPLETED}))) == 2
