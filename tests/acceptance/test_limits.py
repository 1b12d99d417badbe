"""Limits that really stop the body: time, memory, a cancel. And the slot is free again."""

from __future__ import annotations

import time

import pytest
from tests.acceptance.stage import Stage, is_alive, overload, until

from holdfast import TaskFailed
from holdfast.core.task import AttemptEnd, Reason, State

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize("how", ["sleep", "spin", "gil", "swallow"])
def test_a_timeout_stops_the_body_within_a_second_and_frees_the_slot(
    stage: Stage, how: str
) -> None:
    stage.worker("-c", "1")
    late = []

    for _ in range(2):  # the better of two, so that a busy machine does not decide
        handle = stage.shop.stubborn.submit(how)
        behind = stage.shop.noop.submit(1)
        with pytest.raises(TaskFailed, match="time"):
            handle.result(timeout=20)
        over = time.monotonic()

        attempt = handle.history().attempts[0]
        assert handle.task().reason is Reason.TIMEOUT
        assert attempt.ended is AttemptEnd.TIMEOUT
        assert attempt.seconds is not None
        late.append(attempt.seconds - 1.0)  # the timeout
        assert not is_alive(next(s.pid for s in stage.log.starts() if s.task_id == handle.id))
        assert behind.result(timeout=5.0) == 1
        assert time.monotonic() - over < 1.0 * overload()

    assert 0.0 <= min(late) < 1.0 * overload()
    assert stage.broken() == []


def test_a_memory_limit_stops_the_body_and_nothing_else(stage: Stage) -> None:
    worker = stage.worker("-c", "1")
    processes = worker.children()
    handle = stage.shop.hungry.submit()
    behind = stage.shop.noop.submit(1)

    until(lambda: handle.status() in (State.DEAD_LETTER, State.FAILED))

    error = handle.task().error
    assert error is not None
    assert "memory" in f"{error.type} {error.message}".lower()
    assert behind.result(timeout=10) == 1
    assert worker.children() == processes
    assert stage.broken([handle.id, behind.id]) == []


@pytest.mark.parametrize("kind", ["nap", "patient", "child"])
def test_cancelling_a_running_task_stops_it_within_two_seconds(stage: Stage, kind: str) -> None:
    stage.worker("-c", "1")
    handle = getattr(stage.shop, kind).submit(60.0)
    behind = stage.shop.noop.submit(1)
    until(lambda: stage.begun(handle.id))

    asked = time.monotonic()
    handle.cancel()
    until(lambda: handle.status() is State.CANCELLED)
    took = time.monotonic() - asked

    assert took < 2.0 * overload()
    assert [a.ended for a in handle.history().attempts] == [AttemptEnd.CANCELLED]
    assert behind.result(timeout=5) == 1
    start = stage.log.starts()[0]
    assert start.ended is not None or not is_alive(start.pid)
    assert stage.broken([handle.id, behind.id]) == []


def test_a_cancelled_task_that_waits_never_starts(stage: Stage) -> None:
    handles = stage.app.submit_many([stage.shop.noop.call(n) for n in range(50)])
    cancelled = handles[::2]

    for handle in cancelled:
        handle.cancel()
    stage.worker("-c", "4")
    until(lambda: not stage.unfinished())

    started = {start.task_id for start in stage.log.starts()}
    assert started == {handle.id for handle in handles[1::2]}
    assert {handle.status() for handle in cancelled} == {State.CANCELLED}
