"""How to ask for tasks: which ones, and a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.core.ids import is_task_id
from holdfast.core.task import Priority, State, Task, TaskId, WorkerId
from holdfast.errors import InvalidOption


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; every given field must match. An empty filter matches all, an empty collection
    none. Created at or after `created_after` and before `created_before`; `finished_…` alike, which
    no task matches that has not ended. `worker_id` is the worker that runs a task or ran it last;
    `error_type` is that of the task's present error; `name_prefix` is how its name begins, letter
    for letter; `names` and `queues` are one of several; `requires` is a capability among those that
    it requires; `run_before`: it could start, or will, before that.
    """

    ids: tuple[TaskId, ...] | None = None
    states: frozenset[State] | None = None
    name: str | None = None
    names: frozenset[str] | None = None
    name_prefix: str | None = None
    queue: str | None = None
    queues: frozenset[str] | None = None
    priority: Priority | None = None
    tag: str | None = None
    owner: str | None = None
    worker_id: WorkerId | None = None
    lock: str | None = None
    unique_key: str | None = None
    idempotency_key: str | None = None
    parent_id: TaskId | None = None
    error_type: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None
    requires: str | None = None
    run_before: datetime | None = None


def running_on(worker_id: WorkerId) -> TaskFilter:
    """What the store has leased to this worker."""
    return TaskFilter(worker_id=worker_id, states=frozenset({State.RUNNING}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of tasks, newest first unless asked otherwise. Pass `next` to get the one after;
    None means the end.
    """

    tasks: tuple[Task, ...]
    next: str | None = None


def page_of(found: Sequence[Task], *, limit: int, oldest_first: bool) -> Page:
    """The page, when one task more than `limit` was looked for."""
    tasks = tuple(found[:limit])
    has_more = 0 < limit < len(found)
    return Page(tasks=tasks, next=_cursor(tasks[-1].id, oldest_first) if has_more else None)


def read_cursor(after: str | None, *, oldest_first: bool) -> TaskId | None:
    """The last task of the page before. A cursor belongs to one direction: read the other way it
    would bring tasks that were seen, and hide others.
    """
    if after is None:
        return None
    direction, task_id = _parted(after)
    if not is_task_id(task_id):
        raise InvalidOption("after", f"{after!r} is no cursor; pass the `next` of an earlier page")
    if (direction == _OLDEST) is not oldest_first:
        came, goes = ("oldest", "newest") if direction else ("newest", "oldest")
        raise InvalidOption(
            "after", f"{after!r} is from a list {came} first, and this one is {goes} first"
        )
    return TaskId(task_id)


_OLDEST: Final = "oldest-"


def _cursor(task_id: TaskId, oldest_first: bool) -> str:
    return _OLDEST + task_id if oldest_first else task_id


def _parted(cursor: str) -> tuple[str, str]:
    bare = cursor.removeprefix(_OLDEST)
    return (_OLDEST if bare != cursor else ""), bare
