"""Lists of (number, task id), smallest first."""

from __future__ import annotations

from bisect import bisect_left, insort

from holdfast.core.task import TaskId


class SortedIds(list[tuple[int, TaskId]]):
    """(number, id) pairs, smallest first."""

    def has(self, number: int, task_id: TaskId) -> bool:
        index = bisect_left(self, (number, task_id))
        return self[index : index + 1] == [(number, task_id)]

    def add(self, number: int, task_id: TaskId) -> None:
        insort(self, (number, task_id))

    def drop(self, number: int, task_id: TaskId) -> None:
        if self.has(number, task_id):
            del self[bisect_left(self, (number, task_id))]
