"""Who runs what, and when: capabilities, priorities, delays, seen from outside."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta

import pytest
from tests.acceptance.stage import Stage, ids, overload, until

from holdfast.core.task import Priority, State

pytestmark = pytest.mark.acceptance


def test_a_task_that_requires_a_capability_waits_for_it_and_others_flow_past(stage: Stage) -> None:
    plain = stage.worker("-c", "2")
    special = stage.app.submit_many([stage.shop.gpu.call() for _ in range(10)])
    others = stage.app.submit_many([stage.shop.noop.call(n) for n in range(10)])

    assert [handle.result(timeout=60) for handle in others] == list(range(10))
    assert {handle.status() for handle in special} == {State.QUEUED}
    why = json.loads(stage.command("task", "why", special[0].id, "--json").stdout)
    assert "missing_capability" in json.dumps(why)
    able = stage.worker("-c", "2", "--capability", "gpu")
    pids = {handle.result(timeout=60) for handle in special}

    assert pids <= set(able.children())
    assert not pids & set(plain.children())
    assert stage.broken(ids([*special, *others])) == []


def test_priorities_start_in_order_on_one_slot(stage: Stage) -> None:
    stage.app.pause("default")
    stage.worker("-c", "1")
    words = [p for p in Priority for _ in range(5)]
    random.Random(1).shuffle(words)
    submitted = [(stage.shop.noop.options(priority=word).submit(1).id, word) for word in words]

    stage.app.resume("default")
    until(lambda: not stage.unfinished())

    expected = [task_id for priority in Priority for task_id, word in submitted if word is priority]
    assert [start.task_id for start in stage.log.starts()] == expected


def test_delayed_work_and_retries_start_when_due_and_not_before(stage: Stage) -> None:
    stage.worker("-c", "4")
    now = datetime.now(UTC)
    retried = stage.shop.work.submit(0.0, fail_first=True)
    handles = [
        stage.shop.noop.options(delay="1s").submit(1),
        stage.shop.noop.options(run_at=now + timedelta(seconds=1.5)).submit(2),
        stage.shop.noop.options(run_at=now - timedelta(hours=1)).submit(3),
    ]

    until(lambda: not stage.unfinished())

    for handle in handles:
        task = handle.task()
        assert task.started_at is not None
        assert task.started_at >= task.run_at
        assert task.started_at - max(task.run_at, task.created_at) < timedelta(seconds=overload())
    assert retried.result() == 2
    first, second = retried.history().attempts
    assert first.ended_at is not None
    waited = second.started_at - first.ended_at
    assert timedelta(seconds=0.2) <= waited < timedelta(seconds=0.2 + overload())
