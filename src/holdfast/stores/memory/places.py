"""Where every task is: waiting, ready, blocked, running or done; and who has which key.

All changes go through `Places.put`, which takes a task out of the place it is in and puts it where
its state and `run_at` say. `settle`, at the end of each step, goes through the gates that this has
touched (`gates.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from holdfast.core.gate import to_pass
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.passing import Parked
from holdfast.core.task import State, Task, TaskId
from holdfast.stores.memory.gates import Gates
from holdfast.stores.memory.sorted_ids import SortedIds
from holdfast.stores.values import in_us


class Places:
    """Keeps each task in exactly one place. Not locked: its owner is."""

    def __init__(self) -> None:
        self.tasks: dict[TaskId, Task] = {}
        self.waiting = SortedIds()  # by run_at
        self.ready = SortedIds()  # by rank
        self.gates = Gates(self)
        self._touched: set[str] = set()
        self.running: set[TaskId] = set()
        self.expiring = SortedIds()  # by expires_at, what is not running
        self.unique: dict[tuple[str, str], TaskId] = {}  # of unfinished tasks

    def put(self, task: Task, now: int) -> None:
        """Write the task and move it to where it now belongs."""
        old = self.tasks.get(task.id)
        touched = self._touched
        if old:
            touched |= self._leave(old, task, now)
        self.tasks[task.id] = task
        self._mind_unique_key(task)
        if task.state is State.RUNNING:
            self.running.add(task.id)
        elif task.state not in TERMINAL:
            if task.expires_at:
                self.expiring.add(in_us(task.expires_at), task.id)
            if in_us(task.run_at) > now:
                self.waiting.add(in_us(task.run_at), task.id)
            elif gates := to_pass(task.lock, task.gates):
                touched.add(self.park(Parked(task.rank, task.id, gates, 0)))
            else:
                self.line_up(task.id)
        elif old and old.state not in TERMINAL:
            touched |= self.gates.count_end(task, now)

    def touch(self, gates: Iterable[str]) -> None:
        """Somebody else has changed these gates."""
        self._touched.update(gates)

    def settle(self, now: int) -> None:
        """Let tasks pass the gates that were touched since the last time."""
        names, self._touched = self._touched, set()
        self.gates.let_pass(names, now)

    def promote(self, now: int) -> None:
        """Move everything that is due."""
        while self.waiting and self.waiting[0][0] <= now:
            self.put(self.tasks[self.waiting[0][1]], now)
        while due := self.gates.to_look_at(now) | self._touched:
            self.touch(due)
            self.settle(now)

    def next_expired(self, now: int) -> Task | None:
        """A task that is past its expiry and not running."""
        found = self.expiring and self.expiring[0][0] <= now
        return self.tasks[self.expiring[0][1]] if found else None

    def is_ready(self, task: Task) -> bool:
        return self.ready.has(task.rank, task.id)

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

    def line_up(self, task_id: TaskId) -> None:
        """Make a task ready."""
        task = self.tasks[task_id]
        if task.state is not State.QUEUED:
            self.tasks[task_id] = replace(task, state=State.QUEUED)
        self.ready.add(task.rank, task_id)

    def park(self, parked: Parked) -> str:
        """Put a task before its next gate, and say which that is."""
        self.tasks[parked.id] = replace(self.tasks[parked.id], state=State.BLOCKED)
        return self.gates.park(parked)

    def _mind_unique_key(self, task: Task) -> None:
        if task.unique_key is None:
            return
        if task.state not in TERMINAL:
            self.unique[task.name, task.unique_key] = task.id
        else:
            del self.unique[task.name, task.unique_key]

    def _leave(self, old: Task, new: Task, now: int) -> set[str]:
        """Take a task out of its place; answers the gates that this touches."""
        was_ready, was_running = self.is_ready(old), old.id in self.running
        self.running.discard(old.id)
        self.waiting.drop(in_us(old.run_at), old.id)
        self.ready.drop(old.rank, old.id)
        if old.expires_at:
            self.expiring.drop(in_us(old.expires_at), old.id)
        if old.state in TERMINAL:
            self.gates.count_again(old)
        if new.state is State.RUNNING:
            self.gates.start(old, now)
            return set()
        if was_ready or was_running:
            return self.gates.let_go(old, started=was_running)
        return self.gates.unpark(old)
