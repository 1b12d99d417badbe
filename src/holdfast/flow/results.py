"""The results of other tasks, as the arguments of one that is about to start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from holdfast.core.flow import BATCH, ParentResult, ResultRef, Source, flow_of
from holdfast.core.query import Order, TaskFilter
from holdfast.core.shown import decoded
from holdfast.core.task import Json, State, Task, TaskId
from holdfast.flow.children import children_of
from holdfast.ports.store import TaskStore

AT_A_TIME = 1000
NOTHING = b"null"


class NotKept(Exception):
    """A task whose result is wanted is gone."""

    def __init__(self, task_id: TaskId) -> None:
        super().__init__(task_id)
        self.task_id = task_id


async def read_tasks(store: TaskStore, ids: Collection[TaskId]) -> dict[TaskId, Task]:
    """Those of the tasks that there are; one read for a thousand."""
    found: dict[TaskId, Task] = {}
    wanted = tuple(ids)
    for start in range(0, len(wanted), AT_A_TIME):
        some = wanted[start : start + AT_A_TIME]
        page = await store.list(TaskFilter(ids=some), limit=len(some))
        found.update((task.id, task) for task in page.tasks)
    return found


def named_by(refs: Iterable[ResultRef]) -> list[TaskId]:
    """The tasks that must be read for these."""
    return [
        task_id for ref in refs for task_id in ref.task_ids if ref.source is not Source.CHILDREN
    ]


async def values_of(
    store: TaskStore, refs: Mapping[str, ResultRef], found: Mapping[TaskId, Task]
) -> dict[str, Json]:
    """The arguments that come from results. What did not complete has none: null stands for it."""
    values: dict[str, Json] = {}
    for name, (source, ids) in refs.items():
        if source is Source.CHILDREN:
            values[name] = await children_results(store, ids[0])
            continue
        each = []
        for task_id in ids:
            if task_id not in found:
                raise NotKept(task_id)
            each.append(await _result_of(store, found[task_id]))
        values[name] = each[0] if source is Source.ONE else each
    return values


async def children_results(store: TaskStore, parent_id: TaskId) -> list[Json]:
    """The results of all children of one task, oldest first."""
    return [_decoded(child) async for child in children_of(store, parent_id)]


async def last_result(store: TaskStore, parent_id: TaskId) -> bytes:
    """The result of its youngest child, as it is stored."""
    async for child in children_of(store, parent_id, order=Order.NEWEST, page=10):
        return child.result or NOTHING
    return NOTHING


async def _result_of(store: TaskStore, task: Task) -> Json:
    """A parent without a body whose children's results were too many to be kept with it has them
    there.
    """
    if task.state is State.COMPLETED and task.name == BATCH and task.result == NOTHING:
        flow = flow_of(task.payload)
        said = flow.children if flow else None
        if said is not None and said.result is ParentResult.ALL:
            return await children_results(store, task.id)
    return _decoded(task)


def _decoded(task: Task) -> Json:
    return decoded(task.result) if task.state is State.COMPLETED else None
