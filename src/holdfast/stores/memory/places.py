"""Where every task is: waiting, ready, blocked, running or done; and who has which key.

All changes go through `Places.put`, which takes a task out of the place it is in and puts it where
its state and `run_at` say. Of one lock key's eligible tasks the smallest (rank, id) is ready unless
one runs; that invariant, kept at every step, is all there is to locks.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import replace
from itertools import islice

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import State, Task, TaskId
from holdfast.stores.values import in_us


class SortedIds(list[tuple[int, TaskId]]):
    """(number, id) pairs, smallest first."""

    def add(self, number: int, task_id: TaskId) -> None:
        insort(self, (number, task_id))

    def drop(self, number: int, task_id: TaskId) -> None:
        index = bisect_left(self, (number, task_id))
        if self[index : index + 1] == [(number, task_id)]:
            del self[index]


class Places:
    """Keeps each task in exactly one place. Not locked: its owner is."""

    def __init__(self) -> None:
        self.tasks: dict[TaskId, Task] = {}
        self.waiting = SortedIds()  # by run_at
        self.ready = SortedIds()  # by rank
        self.blocked: dict[str, SortedIds] = {}  # by lock key, then rank
        self.running: set[TaskId] = set()
        self.expiring = SortedIds()  # by expires_at, what is not running
        self.holders: dict[str, TaskId] = {}  # by lock key: ready or running
        self.unique: dict[tuple[str, str], TaskId] = {}  # of unfinished tasks

    def put(self, task: Task, now: int) -> None:
        """Write the task and move it to where it now belongs."""
        old = self.tasks.get(task.id)
        if old:
            self._leave(old, starting=task.state is State.RUNNING)
        self.tasks[task.id] = task
        self._mind_unique_key(task)
        if task.state is State.RUNNING:
            self.running.add(task.id)
        elif task.state not in TERMINAL:
            if task.expires_at:
                self.expiring.add(in_us(task.expires_at), task.id)
            if in_us(task.run_at) > now:
                self.waiting.add(in_us(task.run_at), task.id)
            else:
                self._line_up(task)

    def promote(self, now: int) -> None:
        """Move everything that is due."""
        while self.waiting and self.waiting[0][0] <= now:
            self.put(self.tasks[self.waiting[0][1]], now)

    def next_expired(self, now: int) -> Task | None:
        """A task that is past its expiry and not running."""
        found = self.expiring and self.expiring[0][0] <= now
        return self.tasks[self.expiring[0][1]] if found else None

    def is_ready(self, task: Task) -> bool:
        index = bisect_left(self.ready, (task.rank, task.id))
        return self.ready[index : index + 1] == [(task.rank, task.id)]

    def ahead(self, task: Task, cap: int) -> int | None:
        """How many ready tasks of its queue stand before it; None if it does not stand in line."""
        if not self.is_ready(task):
            return None
        before = self.ready[: bisect_left(self.ready, (task.rank, task.id))]
        same_queue = (1 for _, other in before if self.tasks[other].queue == task.queue)
        return sum(islice(same_queue, cap))

    def is_unique_key_taken(self, task: Task) -> bool:
        """Whether another unfinished task has its unique key."""
        if task.unique_key is None:
            return False
        return self.unique.get((task.name, task.unique_key), task.id) != task.id

    def _mind_unique_key(self, task: Task) -> None:
        if task.unique_key is None:
            return
        if task.state not in TERMINAL:
            self.unique[task.name, task.unique_key] = task.id
        else:
            del self.unique[task.name, task.unique_key]

    def _leave(self, task: Task, *, starting: bool) -> None:
        self.running.discard(task.id)
        self.waiting.drop(in_us(task.run_at), task.id)
        self.ready.drop(task.rank, task.id)
        if task.expires_at:
            self.expiring.drop(in_us(task.expires_at), task.id)
        if task.lock is None or starting:
            return  # a holder that starts takes its key along
        rivals = self.blocked.get(task.lock, SortedIds())
        rivals.drop(task.rank, task.id)
        if self.holders.get(task.lock) == task.id:
            del self.holders[task.lock]
            if rivals:
                self._make_ready(self.tasks[rivals.pop(0)[1]])
        if not rivals:
            self.blocked.pop(task.lock, None)

    def _line_up(self, task: Task) -> None:
        """Make an eligible task ready, or blocked if another has or deserves its lock."""
        holder = self.tasks[self.holders[task.lock]] if task.lock in self.holders else None
        if holder is None:
            self._make_ready(task)
        elif holder.state is not State.RUNNING and (task.rank, task.id) < (holder.rank, holder.id):
            self.ready.drop(holder.rank, holder.id)
            self._block(holder)
            self._make_ready(task)
        else:
            self._block(task)

    def _make_ready(self, task: Task) -> None:
        if task.state is not State.QUEUED:
            self.tasks[task.id] = replace(task, state=State.QUEUED)
        self.ready.add(task.rank, task.id)
        if task.lock is not None:
            self.holders[task.lock] = task.id

    def _block(self, task: Task) -> None:
        assert task.lock is not None
        self.tasks[task.id] = replace(task, state=State.BLOCKED)
        self.blocked.setdefault(task.lock, SortedIds()).add(task.rank, task.id)
