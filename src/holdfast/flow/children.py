"""The children of a task, oldest first, a page at a time.

Not all that name it as their parent are its children: a callback's notice tells of its end. Those
that are count its latch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from holdfast.core.dropping import BAD_ENDS, did_not_go_well
from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import State, Task, TaskId
from holdfast.flow.bodies import latch_of_children
from holdfast.ports.store import TaskStore

PAGE = 1000


async def children_of(
    store: TaskStore,
    parent_id: TaskId,
    *,
    states: frozenset[State] | None = None,
    order: Order = Order.OLDEST,
    page: int = PAGE,
) -> AsyncIterator[Task]:
    """Those of its children that are in one of these states."""
    which = TaskFilter(parent_id=parent_id, states=states)
    latch, after = latch_of_children(parent_id), None
    while True:
        found = await store.list(which, limit=page, after=after, order=order)
        for task in found.tasks:
            if latch in task.counts:
                yield task
        after = found.next
        if after is None:
            return


async def failed_child(store: TaskStore, parent_id: TaskId) -> Task | None:
    """The oldest child that should have completed and did not: rather one that failed than one that
    was cancelled because of it. Looked for only if there is one.
    """
    (latch,) = await store.gates(names=[latch_of_children(parent_id)], limit=1) or (None,)
    if latch is not None and not latch.failed:
        return None
    for states in (BAD_ENDS - {State.CANCELLED}, frozenset({State.CANCELLED})):
        async for child in children_of(store, parent_id, states=states, page=100):
            if did_not_go_well(child):
                return child
    return None
