"""The notices that are owed, and who is delivering which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from holdfast.core.callback import Callback
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import Task, TaskId
from holdfast.stores.values import as_time


@dataclass(slots=True)
class _Notice:
    """Times in microseconds."""

    url: str
    ended_at: int
    due: int
    tries: int = 0


class CallbackBook:
    """Not locked: its owner is."""

    def __init__(self) -> None:
        self._owed: dict[TaskId, _Notice] = {}

    def follow(self, task: Task, now: int) -> None:
        """The task is written as it is now: ended, or to be started again."""
        if task.callback is not None and task.state in TERMINAL:
            self._owed[task.id] = _Notice(task.callback, now, now)
        else:
            self.forget(task.id)

    def forget(self, task_id: TaskId) -> None:
        self._owed.pop(task_id, None)

    def take(self, limit: int, now: int, until: int) -> Sequence[Callback]:
        due = sorted((n.due, task_id) for task_id, n in self._owed.items() if n.due <= now)
        return [self._hand_out(task_id, until) for _, task_id in islice(due, max(0, limit))]

    def is_held(self, by: Callback) -> bool:
        """Whether the notice is still as it was handed out."""
        owed = self._owed.get(by.task_id)
        found = owed and (owed.tries, as_time(owed.ended_at))
        return found == (by.tries, by.ended_at)

    def put_off(self, task_id: TaskId, due: int) -> None:
        self._owed[task_id].due = due

    def _hand_out(self, task_id: TaskId, until: int) -> Callback:
        owed = self._owed[task_id]
        owed.due = until
        owed.tries += 1
        return Callback(task_id, owed.url, owed.tries, as_time(owed.ended_at))
