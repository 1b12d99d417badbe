"""Deaths of one kind or another: children, poison, and what only looks like death."""

from __future__ import annotations

import signal

import pytest
from tests.acceptance.stage import Stage, descendants, ids, is_alive, send, until

from holdfast.core.task import AttemptEnd, Cause, Reason, State

pytestmark = pytest.mark.acceptance


def test_a_call_that_holds_the_interpreter_for_two_leases_starts_once(stage: Stage) -> None:
    stage.fleet(2, "-c", "2")
    handle = stage.shop.gil.submit(4.4)  # the lease is 2 s

    assert handle.result(timeout=60) == 1

    assert [(a.cause, a.ended) for a in handle.history().attempts] == [
        (Cause.SUBMITTED, AttemptEnd.COMPLETED)
    ]
    assert len(stage.log.starts()) == 1
    assert stage.broken([handle.id]) == []


def test_children_die_with_their_worker_process_and_with_their_supervisor(stage: Stage) -> None:
    worker = stage.worker("--processes", "2", "-c", "1")
    handle = stage.shop.child.submit(600.0)
    until(lambda: stage.begun(handle.id))
    body = stage.log.starts()[0].pid
    process = next(pid for pid in worker.children() if body in descendants(pid))

    send(process, signal.SIGKILL)

    until(lambda: not is_alive(body), within=5)
    until(lambda: stage.begun(handle.id, attempt=2))
    assert [a.cause for a in handle.history().attempts] == [Cause.SUBMITTED, Cause.WORKER_LOST]
    assert stage.broken([handle.id], finished=False) == []

    family = descendants(worker.pid)
    send(worker.pid, signal.SIGKILL)

    assert stage.log.starts()[-1].pid in family
    until(lambda: not any(is_alive(pid) for pid in family), within=5)


def test_a_poison_pill_stops_and_its_neighbours_complete(stage: Stage) -> None:
    """One that kills only its own process is in `integration/processes/test_supervisor.py`."""
    stage.worker("--processes", "2", "-c", "4")
    neighbours = stage.app.submit_many([stage.shop.work.call(0.05) for _ in range(20)])
    pill = stage.shop.poison.submit()
    neighbours += stage.app.submit_many([stage.shop.work.call(0.05) for _ in range(20)])

    until(lambda: not stage.unfinished(), within=60)

    task = pill.task()
    assert (task.state, task.reason, task.crash_count) == (State.DEAD_LETTER, Reason.POISON, 3)
    ends = [attempt.ended for attempt in pill.history().attempts]
    assert ends.count(AttemptEnd.WORKER_LOST) == 3
    assert set(ends) <= {AttemptEnd.WORKER_LOST, AttemptEnd.RELEASED}  # handed back unstarted
    assert sum(start.task_id == pill.id for start in stage.log.starts()) == 3
    assert {handle.status() for handle in neighbours} == {State.COMPLETED}
    assert stage.broken([pill.id, *ids(neighbours)]) == []


def test_a_poison_pill_takes_no_long_neighbour_along(stage: Stage) -> None:
    """They die with it, again and again; only the guilty one must be given up."""
    stage.worker("-c", "4")
    neighbours = stage.app.submit_many([stage.shop.nap.call(1.0) for _ in range(3)])
    pill = stage.shop.poison.submit()

    until(lambda: not stage.unfinished(), within=60)

    assert pill.status() is State.DEAD_LETTER
    assert {handle.status() for handle in neighbours} == {State.COMPLETED}
