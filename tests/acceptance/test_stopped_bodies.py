"""Limits that really stop the body: time, memory, a cancel. And the slot is free again."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from tests.acceptance.stage import Stage, is_alive, overload, until

from holdfast import Handle, TaskFailed
from holdfast.core.task import AttemptEnd, Reason, State

pytestmark = pytest.mark.acceptance


def test_a_timeout_stops_the_body_within_a_second_and_frees_the_slot(stage: Stage) -> None:
    stage.worker("-c", "1")

    for how in ("sleep", "spin", "gil", "swallow"):
        # The better of two, so that a busy machine does not decide.
        assert is_stopped_in_time(stage, how) or is_stopped_in_time(stage, how), how

    assert stage.broken() == []


def is_stopped_in_time(stage: Stage, how: str) -> bool:
    """Whether the body ended, and the next began, within a second of what they should have."""
    handle = stage.shop.stubborn.submit(how)
    behind = stage.shop.noop.submit(1)
    with pytest.raises(TaskFailed, match="time"):
        handle.result(timeout=60)
    over = time.monotonic()

    (attempt,) = handle.history().attempts
    assert handle.task().reason is Reason.TIMEOUT
    assert attempt.ended is AttemptEnd.TIMEOUT
    assert attempt.seconds is not None
    assert not is_alive(next(s.pid for s in stage.log.starts() if s.task_id == handle.id))
    assert behind.result(timeout=60) == 1
    late = attempt.seconds - 1.0  # the timeout
    assert late >= 0.0
    return bool(max(late, time.monotonic() - over) < 1.0 * overload())


def test_a_memory_limit_stops_the_body_and_nothing_else(stage: Stage) -> None:
    worker = stage.worker("-c", "1")
    processes = worker.children()
    handle = stage.shop.hungry.submit()
    behind = stage.shop.noop.submit(1)

    until(lambda: handle.status() in (State.DEAD_LETTER, State.FAILED))

    error = handle.task().error
    assert error is not None
    assert "memory" in f"{error.type} {error.message}".lower()
    assert behind.result(timeout=60) == 1
    assert worker.children() == processes
    assert stage.broken([handle.id, behind.id]) == []


def test_cancelling_stops_what_runs_within_two_seconds_and_what_waits_never_starts(
    stage: Stage,
) -> None:
    waiting = stage.app.submit_many([stage.shop.noop.call(n) for n in range(20)])
    for handle in waiting[::2]:
        handle.cancel()
    stage.worker("-c", "1")
    until(lambda: not stage.unfinished())
    assert {start.task_id for start in stage.log.starts()} == {h.id for h in waiting[1::2]}
    assert {handle.status() for handle in waiting[::2]} == {State.CANCELLED}

    for task in (stage.shop.nap, stage.shop.patient, stage.shop.child):
        handle = task.submit(60.0)
        behind = stage.shop.noop.submit(1)
        until(partial(stage.begun, handle.id))

        asked = time.monotonic()
        handle.cancel()
        until(partial(is_cancelled, handle))
        took = time.monotonic() - asked

        assert took < 2.0 * overload()
        assert [a.ended for a in handle.history().attempts] == [AttemptEnd.CANCELLED]
        assert behind.result(timeout=60) == 1
        (start,) = [start for start in stage.log.starts() if start.task_id == handle.id]
        assert start.ended is not None or not is_alive(start.pid)
    assert stage.broken() == []


def is_cancelled(handle: Handle[Any]) -> bool:
    return handle.status() is State.CANCELLED
