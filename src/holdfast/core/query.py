"""How to ask for tasks: which ones, and a page at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

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


class Order(StrEnum):
    """In which order tasks are listed: by their ids, which is when they were made, or by their
    ends; then only those that have ended are in the list.
    """

    NEWEST = "-created_at"
    OLDEST = "created_at"
    LAST_ENDED = "-finished_at"
    FIRST_ENDED = "finished_at"

    @classmethod
    def of(cls, *, oldest_first: bool, by_end: bool) -> Order:
        """The order that was asked for."""
        if by_end:
            return cls.FIRST_ENDED if oldest_first else cls.LAST_ENDED
        return cls.OLDEST if oldest_first else cls.NEWEST

    @property
    def is_by_end(self) -> bool:
        return self in (Order.LAST_ENDED, Order.FIRST_ENDED)

    @property
    def is_ascending(self) -> bool:
        return self in (Order.OLDEST, Order.FIRST_ENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of tasks, newest first unless asked otherwise. Pass `next` to get the one after;
    None means the end.
    """

    tasks: tuple[Task, ...]
    next: str | None = None


class Edge(NamedTuple):
    """Where a page ended: its last task, and when that ended if the list is by ends."""

    task_id: TaskId
    ended_at: datetime | None = None


def page_of(found: Sequence[Task], *, limit: int, order: Order) -> Page:
    """The page, when one task more than `limit` was looked for."""
    tasks = tuple(found[:limit])
    has_more = 0 < limit < len(found)
    return Page(tasks=tasks, next=_cursor(tasks[-1], order) if has_more else None)


def read_cursor(after: str | None, order: Order) -> Edge | None:
    """The end of the page before. A cursor belongs to one order: read in another it would bring
    tasks that were seen, and hide others.
    """
    if after is None:
        return None
    found = _CURSOR(after)
    try:
        if found is None or not is_task_id(found["id"]):
            raise ValueError
        ended = None if found["ended"] is None else datetime.fromisoformat(found["ended"])
    except ValueError:
        said = f"{after!r} is no cursor; pass the `next` of an earlier page"
        raise InvalidOption("after", said) from None
    if found["order"] != _BEGINNINGS[order]:
        raise InvalidOption("after", f"{after!r} is of a list in another order than {order.value}")
    return Edge(TaskId(found["id"]), ended)


_BEGINNINGS: Final = {
    Order.NEWEST: "",
    Order.OLDEST: "oldest-",
    Order.LAST_ENDED: "ended-",
    Order.FIRST_ENDED: "first-ended-",
}
_CURSOR: Final = re.compile(
    r"(?P<order>|oldest-|(?:first-)?ended-(?=[0-9]{8}T))"
    r"(?:(?P<ended>[0-9]{8}T[0-9]{6}\.[0-9]{6}\+0000)-)?(?P<id>[0-9a-f-]{36})",
    re.ASCII,
).fullmatch


def _cursor(task: Task, order: Order) -> str:
    if not order.is_by_end or task.finished_at is None:
        return _BEGINNINGS[order] + task.id
    return f"{_BEGINNINGS[order]}{task.finished_at:%Y%m%dT%H%M%S.%f%z}-{task.id}"
