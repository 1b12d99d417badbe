"""A worker that was stopped past its lease comes back as a zombie, and does no harm."""

from __future__ import annotations

import signal

import pytest
from tests.acceptance.stage import Stage, send, until
from tests.stopping import stop_between_writes

from holdfast.core.task import AttemptEnd, Cause, State

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize(
    ("store", "whole"),
    [("postgres", False), ("sqlite", True)],
    indirect=["store"],
    ids=["its process", "its whole family"],
)
def test_a_worker_stopped_past_its_lease_is_refused_and_works_on(stage: Stage, whole: bool) -> None:
    zombie = stage.worker("-c", "1")
    handle = stage.shop.nap.submit(1.0)  # over when it comes back, before it hears of its loss
    until(lambda: stage.begun(handle.id))
    stopped = [*zombie.children(), *([zombie.pid] if whole else [])]

    database = stage.folder / "shop.db"
    if database.exists():
        stop_between_writes(stopped, database)
    for pid in stopped:
        send(pid, signal.SIGSTOP)
    other = stage.worker("-c", "1")
    assert handle.result(timeout=60) == 2
    for pid in stopped:
        send(pid, signal.SIGCONT)

    until(lambda: "late_result_refused" in [event.kind for event in handle.history().events])
    history = handle.history()
    assert [(a.cause, a.ended) for a in history.attempts] == [
        (Cause.SUBMITTED, AttemptEnd.WORKER_LOST),
        (Cause.WORKER_LOST, AttemptEnd.COMPLETED),
    ]
    late = next(event for event in history.events if event.kind == "late_result_refused")
    assert (late.attempt, late.worker_id) == (1, history.attempts[0].worker_id)
    assert handle.task().result == b"2"
    assert stage.app.stats().refused >= 1

    other.signal(signal.SIGTERM)
    assert other.wait() == 0
    later = stage.shop.noop.submit(7)
    assert later.result(timeout=60) == 7
    assert stage.log.starts()[-1].pid in zombie.children()
    assert stage.broken([handle.id, later.id]) == []
    assert later.status() is State.COMPLETED
