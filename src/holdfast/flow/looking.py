"""Looking at what belongs together: whole trees, and results that are with the children."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson

from holdfast.core.callback import NAME as NOTICE
from holdfast.core.flow import BATCH, ParentResult, flow_of
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import State, Task, TaskId
from holdfast.core.tree import MOST_SHOWN, TaskTree, leaf
from holdfast.flow.children import children_of
from holdfast.flow.results import NOTHING, children_results
from holdfast.flow.trees import is_parent
from holdfast.ports.store import TaskStore

UNCOUNTED = 1_000_000_000


async def tree_of(
    store: TaskStore, root: Task, shows: Callable[[Task], bool], most: int = MOST_SHOWN
) -> TaskTree:
    """The task and what is below it, level by level: `most` tasks, of those that `shows` allows."""
    left = most - 1
    found: dict[TaskId, list[Task]] = {}
    waiting = [root]
    while waiting:
        parent = waiting.pop(0)
        if not is_parent(parent):
            continue
        some = found[parent.id] = await _first_children(store, parent.id, shows, left)
        left -= len(some)
        waiting += some
    totals = {parent_id: await _totals(store, parent_id, found[parent_id]) for parent_id in found}
    return _grown(root, found, totals)


async def _first_children(
    store: TaskStore, parent_id: TaskId, shows: Callable[[Task], bool], most: int
) -> list[Task]:
    some: list[Task] = []
    if most <= 0:
        return some
    async for child in children_of(store, parent_id, page=min(most, 1000)):
        if shows(child):
            some.append(child)
        if len(some) == most:
            break
    return some


async def _totals(store: TaskStore, parent_id: TaskId, some: Sequence[Task]) -> tuple[int, int]:
    """How many of its children have ended, and how many there are."""
    named = TaskFilter(parent_id=parent_id)
    notices = await store.count(replace(named, name=NOTICE), limit=UNCOUNTED)
    total = await store.count(named, limit=UNCOUNTED) - notices
    if total == len(some):
        return sum(task.state in TERMINAL for task in some), total
    over = replace(named, states=TERMINAL)
    notices = await store.count(replace(over, name=NOTICE), limit=UNCOUNTED)
    return await store.count(over, limit=UNCOUNTED) - notices, total


def _grown(
    task: Task, found: dict[TaskId, list[Task]], totals: dict[TaskId, tuple[int, int]]
) -> TaskTree:
    children = tuple(_grown(child, found, totals) for child in found.get(task.id, ()))
    ended, total = totals.get(task.id, (0, 0))
    return replace(
        leaf(task), children=children, ended=ended, total=total, left_out=total - len(children)
    )


async def with_whole_result(store: TaskStore, task: Task) -> Task:
    """The task with its result, also if that is too large to be kept with it: the results of the
    children of a parent without a body.
    """
    if task.name != BATCH or task.state is not State.COMPLETED or task.result != NOTHING:
        return task
    flow = flow_of(task.payload)
    said = flow.children if flow else None
    if said is None:
        return task
    if said.result is ParentResult.ALL:
        return replace(task, result=orjson.dumps(await children_results(store, task.id)))
    async for last in children_of(store, task.id, order=Order.NEWEST, page=10):
        return replace(task, result=(await with_whole_result(store, last)).result)
    return task
