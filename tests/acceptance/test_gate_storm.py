"""kill -9 of those who hold gates and count latches: never one too many, and nobody stuck."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

import pytest
from tests.acceptance.conftest import MakeStage, on_every_store
from tests.acceptance.stage import Stage, until
from tests.acceptance.storm import ARGUMENTS, CRASHES, SETTINGS, Killer
from tests.kit.startlog import Start

from holdfast import Call
from holdfast.core.gate import Count
from holdfast.core.record import Changes
from holdfast.core.task import NewTask, State
from holdfast.testing.factories import behind

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

WHOLE = "HOLDFAST_TEST_GATE_STORM" in os.environ
"""The long dose: 20 kills during 400 sections, and 1,000 members of a group."""
SECTIONS, MEMBERS, KILLS = (400, 1_000, 20) if WHOLE else (150, 300, 8)
LIMIT = 3
GROUP = "latch:group"


@on_every_store
def test_killed_holders_leave_a_limit_exact_and_a_latch_opens_once(make_stage: MakeStage) -> None:
    stage = make_stage(**SETTINGS)
    share = 5 if stage.is_slow and not WHOLE else 1
    workers = [stage.worker(*ARGUMENTS) for _ in range(2)]
    killer = Killer(stage, workers, seed=7)
    sections = _tasks(stage, [stage.shop.section.call("acme", 0.05)] * (SECTIONS // share))
    members = _tasks(stage, [stage.shop.nap.call(0.01)] * (MEMBERS // share), counts=(GROUP,))
    last = _tasks(stage, [stage.shop.noop.call(1)], gates=behind(GROUP))
    _commit(stage, [*last, *sections, *members], [Count(GROUP, len(members))])

    killer.storm(KILLS * 0.8, every=0.8)
    until(lambda: not stage.unfinished(), within=400 if stage.is_slow else 120)

    ids = [task.id for task in (*last, *sections, *members)]
    starts = stage.log.starts()
    assert stage.broken(ids, crash_limit=CRASHES) == []
    assert {picture.task.state for picture in stage.pictures()} == {State.COMPLETED}
    assert len(killer.killed) >= KILLS / 2
    assert most_at_once(start for start in starts if start.task_id in _ids(sections)) <= LIMIT
    ended = [start.ended for start in starts if start.task_id in _ids(members) and start.ended]
    begun = [start.began for start in starts if start.task_id == last[0].id]
    assert min(begun) > max(ended)
    assert stage.app.wait_for(stage.app.client.doctor()) == []


def most_at_once(starts: Iterable[Start]) -> int:
    """How many bodies ran at one time, of those that were not killed."""
    whole = [(start.began, start.ended) for start in starts if start.ended is not None]
    return max(sum(began <= at < ended for began, ended in whole) for at, _ in whole)


def _ids(tasks: Sequence[NewTask]) -> set[str]:
    return {task.id for task in tasks}


def _tasks(stage: Stage, calls: Sequence[Call[Any]], **changes: Any) -> list[NewTask]:
    """Latches have no words of their own, so tasks are made as they are and changed."""
    return [task._replace(**changes) for task in stage.app.client.new_tasks(calls)]


def _commit(stage: Stage, tasks: Sequence[NewTask], counts: Sequence[Count]) -> None:
    changes = Changes(uuid4().hex, tasks, counts=counts)
    stage.app.wait_for(stage.app.client.store.commit(changes))
