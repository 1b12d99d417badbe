"""Dead letters by what killed them: the same task, the same error, the same words but for numbers
and ids.

No store groups them. The newest thousand are read and grouped here, and whoever shows them says so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import Task, TaskId
from holdfast.server.reach import Reach

MOST: Final = 1000
AT_ONCE: Final = 50
"""Tasks that are read at once: each may have megabytes."""
LONGEST: Final = 200

_VARIES: Final = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # an id
    r"|0x[0-9a-fA-F]+"  # an address
    r"|\b(?=[a-fA-F]*[0-9])[0-9a-fA-F]{12,}\b"  # a digest
    r"|[0-9]+(?:[.,:][0-9]+)*",
    re.ASCII,
)


@dataclass(slots=True, kw_only=True)
class Group:
    """Tasks that gave up alike. `line` is what their errors say, with `#` for what varies."""

    key: str
    name: str
    error_type: str
    line: str
    newest: datetime
    oldest: datetime
    queues: set[str] = field(default_factory=set)
    ids: list[TaskId] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.ids)

    def add(self, task: Task, ended: datetime) -> None:
        self.ids.append(task.id)
        self.queues.add(task.queue)
        self.newest, self.oldest = max(self.newest, ended), min(self.oldest, ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """The newest `looked_at` of those that match, the largest group first. `has_more`: there are
    older ones.
    """

    groups: Sequence[Group]
    looked_at: int
    has_more: bool

    def find(self, key: str) -> Group | None:
        return next((group for group in self.groups if group.key == key), None)


async def grouped(reach: Reach, which: TaskFilter) -> Grouped:
    """What matches and this token may see, grouped."""
    found: dict[str, Group] = {}
    looked_at, after = 0, None
    while True:
        page = await reach.list(which, limit=AT_ONCE, after=after, order=Order.LAST_ENDED)
        for task in page.tasks:
            _put(found, task)
        looked_at, after = looked_at + len(page.tasks), page.next
        if after is None or looked_at >= MOST:
            break
    groups = sorted(found.values(), key=lambda group: (-group.count, group.key))
    return Grouped(groups=groups, looked_at=looked_at, has_more=after is not None)


def pinned(which: TaskFilter, group: Group) -> TaskFilter:
    """No task that was not looked at when this group was counted."""
    return replace(
        which,
        finished_after=group.oldest,
        finished_before=group.newest + timedelta(microseconds=1),
    )


def first_line(message: str) -> str:
    """The first line that says anything, with what varies made alike."""
    lines = (line.strip() for line in message[:2000].splitlines())
    return _VARIES.sub("#", next((line for line in lines if line), "")[:500])[:LONGEST]


def group_key(name: str, error_type: str, line: str) -> str:
    """The name of the group in addresses."""
    said = f"{name}\0{error_type}\0{line}"
    return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:16]


def _put(found: dict[str, Group], task: Task) -> None:
    ended = task.finished_at or task.created_at
    error_type, message = (task.error.type, task.error.message) if task.error else ("", "")
    line = first_line(message)
    key = group_key(task.name, error_type, line)
    if key not in found:
        found[key] = Group(
            key=key, name=task.name, error_type=error_type, line=line, newest=ended, oldest=ended
        )
    found[key].add(task, ended)
