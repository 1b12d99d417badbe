"""Pages that end early rather than grow large: a task may have megabytes, and a page a thousand of
them. What is left out of a page comes with the next one; a history keeps its newest part.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, takewhile
from typing import Final, TypeVar

from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.query import Order, Page, TaskFilter, page_of
from holdfast.core.task import Task, TaskError
from holdfast.server.reach import Reach

PAGE_BYTES = 8 * 1024 * 1024
STEP: Final = 25
"""Tasks that are read at once, before it is known how large they are."""

T = TypeVar("T")


async def read_page(
    reach: Reach, which: TaskFilter, *, limit: int, after: str | None, order: Order
) -> Page:
    """A page of up to `limit` tasks, and of `PAGE_BYTES` unless its first one alone is larger."""
    found: list[Task] = []
    left = PAGE_BYTES
    while True:
        step = min(STEP, limit - len(found))
        page = await reach.list(which, limit=step, after=after, order=order)
        for task in page.tasks:
            left -= _size_of_task(task)
            if left < 0 and found:
                return page_of([*found, task], limit=len(found), order=order)
            found.append(task)
        after = page.next
        if after is None or len(found) == limit:
            return Page(tasks=tuple(found), next=after)


def newest_of(history: History) -> History:
    """As much of a history, from its end, as fits a page; half of that for its attempts."""
    return History(
        attempts=_newest(history.attempts, PAGE_BYTES // 2),
        events=_newest(history.events, PAGE_BYTES // 2),
    )


def _newest(many: tuple[T, ...], room: int) -> tuple[T, ...]:
    sizes = accumulate(_size_of(each) for each in reversed(many))
    return many[len(many) - len(list(takewhile(lambda size: size <= room, sizes))) :]


def _size_of(each: object) -> int:
    detail = each.detail if isinstance(each, Event) else None
    error = each.error if isinstance(each, Attempt) else None
    return 300 + _bytes([detail]) + _size_of_error(error)


def _size_of_task(task: Task) -> int:
    texts = [task.unique_key, task.idempotency_key, task.lock, task.callback, *task.tags]
    return (
        1000
        + len(task.payload)
        + len(task.result or b"")
        + _bytes(texts)
        + _size_of_error(task.error)
    )


def _size_of_error(error: TaskError | None) -> int:
    return 0 if error is None else _bytes([error.type, error.message, error.traceback])


def _bytes(texts: Iterable[str | None]) -> int:
    """Roughly: JSON writes no character longer than six bytes, and most as one."""
    return sum(len(text) for text in texts if text)
