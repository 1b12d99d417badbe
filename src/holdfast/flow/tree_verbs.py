"""The verbs about children and trees that a client has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.core import keys
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import Order, Page, TaskFilter
from holdfast.core.task import Task
from holdfast.core.tree import TaskTree, children_in
from holdfast.definitions.handle import TaskRef
from holdfast.errors import TaskNotFound
from holdfast.filters import page_size, read_id
from holdfast.flow.children import children_of
from holdfast.flow.looking import tree_of, with_whole_result
from holdfast.ports.store import Store


class TreeVerbs:
    """A part of the client."""

    store: Store

    async def get(self, task_id: TaskRef) -> Task:
        """The whole picture of one task."""
        wanted = read_id(task_id)
        task = await self.store.get(wanted)
        if task is None:
            raise TaskNotFound(wanted)
        return keys.shown(task)

    async def children(
        self, task_id: TaskRef, *, limit: int = 100, after: str | None = None
    ) -> Page:
        """A page of the task's own children, oldest first."""
        parent, most = await self.get(task_id), page_size(limit)
        which = TaskFilter(parent_id=parent.id)
        page = await self.store.list(which, limit=most, after=after, order=Order.OLDEST)
        return children_in(replace(page, tasks=tuple(map(keys.shown, page.tasks))))

    async def tree(self, task_id: TaskRef) -> TaskTree:
        """The task with its children, their children and so on: the first 1,000, level by level,
        and how many more there are.
        """
        return await self.tree_of(await self.get(task_id), lambda _: True)

    async def tree_of(self, root: Task, shows: Callable[[Task], bool]) -> TaskTree:
        """The same, of those tasks that `shows` allows."""
        return await tree_of(self.store, root, shows)

    async def with_whole_result(self, task: Task) -> Task:
        """The task with its result, also if that is too large to be kept with it."""
        return await with_whole_result(self.store, task)

    async def ended_children(self, task_id: TaskRef) -> Sequence[Task]:
        """The children of a task that have ended, oldest first."""
        found = children_of(self.store, read_id(task_id), states=TERMINAL)
        return [keys.shown(child) async for child in found]
