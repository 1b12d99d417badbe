"""A task with its children, their children and so on, for people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from holdfast.core.flow import children_latch
from holdfast.core.gate import GateKind, gate_name
from holdfast.core.query import Page
from holdfast.core.task import Reason, State, Task, TaskError, TaskId

MOST_SHOWN: Final = 1000
"""Tasks of one tree; the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTree:
    """A task and what is below it. `ended` of `total` are those of its own children that have
    ended; `left_out` are those that are not among its `children` here, because the tree is large.
    """

    id: TaskId
    name: str
    state: State
    reason: Reason | None = None
    error: TaskError | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    ended: int = 0
    total: int = 0
    left_out: int = 0
    children: tuple[TaskTree, ...] = ()


def leaf(task: Task) -> TaskTree:
    """A task without what is below it."""
    return TaskTree(
        id=task.id,
        name=task.name,
        state=task.state,
        reason=task.reason,
        error=task.error,
        started_at=task.started_at,
        finished_at=task.finished_at,
    )


def children_in(page: Page) -> Page:
    """The page without those that only name a task as their parent: notices of its end."""
    kept = [task for task in page.tasks if task.parent_id and _latch(task.parent_id) in task.counts]
    return replace(page, tasks=tuple(kept))


def _latch(parent_id: TaskId) -> str:
    return gate_name(GateKind.LATCH, children_latch(parent_id))
