"""The row numbers of the tasks this process has claimed.

A row is found by its number without a look into the index of ids, which takes a quarter off the
writing of an end. Only a shortcut: for a task that is not here, its id is looked up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from holdfast.core.task import TaskId

_MOST: Final = 200_000


class RowNumbers:
    """Remembers a number from the claim of a task to its settlement. Safe from any thread."""

    def __init__(self) -> None:
        self._number_of: dict[TaskId, int] = {}
        self._task_of: dict[int, TaskId] = {}
        self._gated: set[int] = set()

    def learn(
        self, tasks: Sequence[TaskId], numbers: Sequence[int], gated: Collection[int] = ()
    ) -> None:
        """These tasks were claimed from these rows; `gated` of them have to do with gates."""
        if len(self._number_of) > _MOST:
            self.forget()  # claimed and never settled here: whoever did that may look up ids
        self._number_of.update(zip(tasks, numbers, strict=True))
        self._task_of.update(zip(numbers, tasks, strict=True))
        self._gated.update(gated)

    def take(self, task: TaskId) -> int | None:
        """The row of this task, told once.

        None also if another task was claimed from that row since: the number of a task that was
        forgotten may be given to a new one.
        """
        number = self._number_of.pop(task, None)
        if number is None or self._task_of.get(number) != task:
            return None
        del self._task_of[number]
        return number

    def forget(self) -> None:
        self._number_of, self._task_of, self._gated = {}, {}, set()

    def is_gated(self, number: int) -> bool:
        """Whether the task of this row had to do with gates when it was claimed, told once. Only a
        hint, too.
        """
        if number not in self._gated:
            return False
        self._gated.discard(number)
        return True
