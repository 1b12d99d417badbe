"""How to ask for tasks: which ones, and a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.core.task import Priority, State, Task, TaskId, WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; every given field must match. An empty filter matches all, an empty collection
    none. Created at or after `created_after` and before `created_before`; `worker_id` is the worker
    that runs a task or ran it last; `error_type` is that of the task's present error.
    """

    ids: tuple[TaskId, ...] | None = None
    states: frozenset[State] | None = None
    name: str | None = None
    queue: str | None = None
    priority: Priority | None = None
    tag: str | None = None
    owner: str | None = None
    worker_id: WorkerId | None = None
    lock: str | None = None
    unique_key: str | None = None
    parent_id: TaskId | None = None
    error_type: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of tasks, newest first. Pass `next` to get the one after; None means the end."""

    tasks: tuple[Task, ...]
    next: str | None = None
