"""kill -9 of workers that run what is made of many tasks: the order holds, parents end last, and
nothing is stuck.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from tests.acceptance.conftest import MakeStage, on_every_store
from tests.acceptance.stage import Stage, until
from tests.acceptance.storm import ARGUMENTS, CRASHES, SETTINGS, Killer
from tests.kit.startlog import Start
from tests.kit.weaving import family, linked, parent, stored

from holdfast.core.flow import BATCH, Body, OnFailure
from holdfast.core.query import TaskFilter
from holdfast.core.task import NewTask, Reason, State, Task

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]

WHOLE = "HOLDFAST_TEST_COMPOSITION_STORM" in os.environ
"""The long dose: 100 rounds."""
ROUNDS = 100 if WHOLE else 3
LINKS, MEMBERS = 8, 12


@on_every_store
def test_killed_workers_change_neither_the_order_nor_who_ends_last(make_stage: MakeStage) -> None:
    stage = make_stage(**SETTINGS)
    killer = Killer(stage, [stage.worker(*ARGUMENTS) for _ in range(2)], seed=11)
    for number in range(ROUNDS):
        links: list[NewTask] = []
        for _ in range(LINKS):
            links.append(linked("nap", {"seconds": 0.02}, after=links[-1:], max_retries=5))
        above, after = parent(), parent("noop", body=Body.AFTER, max_retries=5)
        before = parent("noop", {"n": number}, body=Body.BEFORE, max_retries=5)
        members = [_nap() for _ in range(MEMBERS)]
        behind = [_nap(body_of=before) for _ in range(3)]
        branch = linked("branch", {"width": 3, "depth": 2, "seconds": 0.02}, max_retries=5)
        tops = family(above, [*links, after, before, branch])
        tasks = [*tops, *family(after, members)[1:], *family(before, behind)[1:]]
        _commit(stage, tasks)
        time.sleep(0.1 + 0.05 * (number % 5))  # somewhere in the middle
        killer.strike()

        until(lambda: not stage.unfinished(), within=300 if stage.is_slow else 90)

        starts = _by_task(stage.log.starts())
        for first, second in pairwise(links):
            assert _ended(starts[first.id]) <= starts[second.id][0].began
        assert max(_ended(starts[member.id]) for member in members) <= starts[after.id][0].began
        assert _ended(starts[before.id]) <= min(starts[child.id][0].began for child in behind)
        ended = {task.id: task for task in _tasks(stage, tasks)}
        assert [(t.name, t.error) for t in ended.values() if t.state is not State.COMPLETED] == []
        for each in tops[1:]:
            assert _finished(ended[each.id]) <= _finished(ended[above.id])
        assert ended[before.id].value == number

    assert stage.app.count(TaskFilter(name="branch")) == 4 * ROUNDS
    assert (
        stage.app.count(TaskFilter(name="branch", states=frozenset({State.COMPLETED})))
        == 4 * ROUNDS
    )
    assert killer.killed
    assert stage.broken(crash_limit=CRASHES) == []
    assert stage.app.wait_for(stage.app.client.doctor()) == []


@on_every_store
def test_a_failing_child_in_a_tree_of_1000_leaves_nothing_stuck(make_stage: MakeStage) -> None:
    stage = make_stage(**SETTINGS)
    width = 20 if stage.is_slow and not WHOLE else 99
    root, culprit = parent(), linked("hopeless", {"seconds": 0.3})
    tasks = [root, culprit]
    tops = [culprit]
    for number in range(10):
        policy = OnFailure.CANCEL_REST if number % 2 else OnFailure.FAIL_PARENT
        middle = parent(on_failure=policy)
        line: list[NewTask] = [culprit]
        for _ in range(width):
            rest_of = middle if number % 2 else None
            line.append(linked("noop", after=line[-1:], rest_of=rest_of))
        tops.append(middle)
        tasks += family(middle, line[1:])
    whole = family(root, tops)
    _commit(stage, [*whole, *(task for task in tasks if task.id not in {t.id for t in whole})])
    killer = Killer(stage, [stage.worker(*ARGUMENTS) for _ in range(2)], seed=3)
    cancelled = TaskFilter(states=frozenset({State.CANCELLED}))
    until(lambda: stage.app.count(cancelled) > width, within=120)

    killer.strike()
    until(lambda: not stage.unfinished(), within=400 if stage.is_slow else 120)

    assert killer.killed
    assert stage.app.wait_for(stage.app.client.doctor()) == []
    pages = _tasks(stage, tasks)
    assert len(pages) == len(tasks)
    for task in pages:
        if task.id == culprit.id:
            assert task.state is State.DEAD_LETTER
        elif task.name == BATCH:
            assert task.state is State.FAILED
            assert task.error is not None
            assert culprit.id in task.error.message
        else:
            assert (task.state, task.reason) == (State.CANCELLED, Reason.DEPENDENCY_FAILED)


def _nap(body_of: NewTask | None = None) -> NewTask:
    return linked("nap", {"seconds": 0.02}, body_of=body_of, max_retries=5)


def _commit(stage: Stage, tasks: Sequence[NewTask]) -> None:
    stage.app.open().wait_for(stage.app.client.store.commit(stored(tasks)))


def _tasks(stage: Stage, tasks: Sequence[NewTask]) -> list[Task]:
    wanted = [task.id for task in tasks]
    found: list[Task] = []
    for start in range(0, len(wanted), 500):
        some = tuple(wanted[start : start + 500])
        found += stage.app.list(TaskFilter(ids=some), limit=len(some)).tasks
    return found


def _by_task(starts: Sequence[Start]) -> dict[str, list[Start]]:
    found: dict[str, list[Start]] = {}
    for start in starts:
        found.setdefault(start.task_id, []).append(start)
    return found


def _ended(starts: Sequence[Start]) -> float:
    """When the body that counts was through."""
    return max(start.ended for start in starts if start.ended is not None)


def _finished(task: Task) -> float:
    assert task.finished_at is not None
    return task.finished_at.timestamp()
