"""kill -9 of those who hold locks and gates and count latches: never one too many, none stuck."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
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
"""The long dose: 20 kills during 400 sections of each kind, and 1,000 members of a group."""
SECTIONS, MEMBERS, KILLS = (400, 1_000, 20) if WHOLE else (150, 200, 8)
KEYS = 8
LIMIT = 3
GROUP = "latch:group"


@on_every_store
def test_killed_holders_leave_locks_exclusive_a_limit_exact_and_a_latch_opens_once(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(**SETTINGS)
    share = 8 if stage.is_slow and not WHOLE else 1
    workers = stage.fleet(2, *ARGUMENTS)
    killer = Killer(stage, workers, seed=7)
    keys = [f"d{n % KEYS}" for n in range(SECTIONS // share)]
    locked = _tasks(stage, [stage.shop.locked.call(key, 0.1) for key in keys])
    sections = _tasks(stage, [stage.shop.section.call("acme", 0.05)] * (SECTIONS // share))
    members = _tasks(stage, [stage.shop.nap.call(0.01)] * (MEMBERS // share), counts=(GROUP,))
    last = _tasks(stage, [stage.shop.noop.call(1)], gates=behind(GROUP))
    tasks = [*last, *locked, *sections, *members]
    _commit(stage, tasks, [Count(GROUP, len(members))])

    killer.storm(KILLS * 0.8, every=0.8)
    # MongoDB leaves the transaction of a process that died open for a minute, and with it the locks
    # of its documents: several deaths in a row may hold one key up.
    until(lambda: not stage.unfinished(), within=400 if stage.is_slow else 120)

    starts, pictures = stage.log.starts(), stage.pictures()
    assert stage.broken(_ids(tasks), pictures=pictures, crash_limit=CRASHES) == []
    assert {picture.task.state for picture in pictures} == {State.COMPLETED}
    assert {start.task_id for start in starts} == _ids(tasks)
    assert len(killer.killed) >= KILLS / 2
    assert_exclusive([start for start in starts if start.lock])
    assert most_at_once(start for start in starts if start.task_id in _ids(sections)) <= LIMIT
    ended = [start.ended for start in starts if start.task_id in _ids(members) and start.ended]
    begun = [start.began for start in starts if start.task_id == last[0].id]
    assert min(begun) > max(ended)
    assert stage.app.wait_for(stage.app.client.doctor()) == []


def assert_exclusive(starts: Sequence[Start]) -> None:
    """Each holder of a key began when the one before it had ended or died, and the fence grew."""
    assert len({start.lock for start in starts}) == KEYS
    in_time = sorted(starts, key=lambda start: (str(start.lock), start.began))
    for before, after in pairwise(in_time):
        if before.lock == after.lock:
            assert before.ended is None or before.ended <= after.began
            assert before.fence is not None
            assert after.fence is not None
            assert before.fence < after.fence


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
