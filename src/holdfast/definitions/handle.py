"""A hold on one submitted task: ask how it is, wait for its result, stop it, start it again.

Every verb exists twice, for sync and for async code (`…_async`); `await handle` is the result.
Waiting looks at the store with growing pauses, 2 ms to 100 ms: no connection is kept, and any
process may wait for any task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from uuid import UUID

from holdfast.core.attempt import History
from holdfast.core.duration import Duration
from holdfast.core.flow import BATCH, Source
from holdfast.core.lifecycle import is_terminal
from holdfast.core.task import Reason, State, SubmitOutcome, Task, TaskId
from holdfast.core.tree import TaskTree
from holdfast.definitions.readers import read_duration
from holdfast.definitions.references import ResultOf
from holdfast.errors import ResultTimeout, TaskCancelled, TaskFailed

if TYPE_CHECKING:
    from holdfast.definitions.home import Home

R_co = TypeVar("R_co", covariant=True)

_OF_OTHERS = frozenset({Reason.DEPENDENCY_FAILED, Reason.NOT_NEEDED})
_SHORTEST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.002, 0.1, 1.5


class Handle(Generic[R_co]):
    """One task, held by its id.

    `outcome` says whether the submit created it, or which key led to a task that was there already;
    None for a handle that was made from an id.
    """

    __slots__ = ("_home", "_result_of", "id", "outcome")

    def __init__(
        self,
        home: Home,
        task_id: TaskId,
        result_of: Callable[[Task], R_co],
        outcome: SubmitOutcome | None = None,
    ) -> None:
        self._home = home
        self._result_of = result_of
        self.id = task_id
        self.outcome = outcome

    @property
    def created(self) -> bool:
        """Whether this submit made a new task; False if a key led to one that existed."""
        return self.outcome is not None and self.outcome.is_new

    def task(self) -> Task:
        """The whole picture of the task as it is now."""
        return self._home.wait_for(self.task_async())

    async def task_async(self) -> Task:
        return await (await self._home.verbs()).get(self.id)

    def status(self) -> State:
        """The task's state now."""
        return self._home.wait_for(self.status_async())

    async def status_async(self) -> State:
        return (await self.task_async()).state

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for the end and return the result; without `timeout` as long as it takes.

        Raises:
            TaskFailed: it failed or is a dead letter; carries the error.
            TaskCancelled: it was cancelled, or expired.
            ResultTimeout: not ended in time; the task goes on.
        """
        return self._home.wait_for(self.result_async(timeout))

    async def result_async(self, timeout: Duration | None = None) -> R_co:
        seconds = None if timeout is None else read_duration("timeout", timeout)
        task = await self._ended(seconds)
        if task.state is not State.COMPLETED:
            raise _unsuccessful(task)
        if task.name == BATCH:
            task = await (await self._home.verbs()).with_whole_result(task)
        return self._result_of(task)

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.result_async().__await__()

    def cancel(self) -> Task:
        """Cancel it: at once if it has not started, else its worker is asked to stop it."""
        return self._home.wait_for(self.cancel_async())

    async def cancel_async(self) -> Task:
        return await (await self._home.verbs()).cancel(self.id)

    def retry(self) -> Task:
        """Start it again: an ended task anew, one that waits for its time right now."""
        return self._home.wait_for(self.retry_async())

    async def retry_async(self) -> Task:
        return await (await self._home.verbs()).retry(self.id)

    def history(self) -> History:
        """Every attempt and event of the task."""
        return self._home.wait_for(self.history_async())

    async def history_async(self) -> History:
        return await (await self._home.verbs()).history(self.id)

    def children(self) -> list[Task]:
        """Its own children, oldest first: up to 1,000 (`app.children` has all, page by page)."""
        return self._home.wait_for(self.children_async())

    async def children_async(self) -> list[Task]:
        return list((await (await self._home.verbs()).children(self.id, limit=1000)).tasks)

    def tree(self) -> TaskTree:
        """It, its children, their children and so on, each with how many have ended."""
        return self._home.wait_for(self.tree_async())

    async def tree_async(self) -> TaskTree:
        return await (await self._home.verbs()).tree(self.id)

    def result_ref(self) -> R_co:
        """Its result as an argument of a task that waits for it: `g.submit(x=h.result_ref())`. To a
        type checker it is the result itself. That it fits is checked when `g` starts.
        """
        return cast("R_co", ResultOf(Source.ONE, (self.id,)))

    async def _ended(self, seconds: float | None) -> Task:
        loop = asyncio.get_running_loop()
        give_up_at = None if seconds is None else loop.time() + seconds
        pause = _SHORTEST_PAUSE
        verbs = await self._home.verbs()
        while True:
            task = await verbs.get(self.id)
            if is_terminal(task.state):
                return task
            left = pause if give_up_at is None else give_up_at - loop.time()
            if left <= 0:
                raise ResultTimeout(
                    f"task {self.id} ({task.name}) is still {task.state} after {seconds:g} s. It "
                    "goes on; ask again later, or run `holdfast task why` to see what it waits for."
                )
            await asyncio.sleep(min(pause, left))
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Handle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"


TaskRef = str | UUID | Handle[Any]
"""A task by its id, or by a handle on it."""


def _unsuccessful(task: Task) -> TaskFailed | TaskCancelled:
    if task.state is State.CANCELLED:
        what = "expired before it could start" if task.reason is Reason.EXPIRED else "was cancelled"
        why = f" because {task.error.message}" if task.reason in _OF_OTHERS and task.error else ""
        return TaskCancelled(
            f"task {task.id} ({task.name}) {what}{why}.", task_id=task.id, state=task.state
        )
    error = task.error
    said = f": {error.type}: {error.message}" if error else ""
    return TaskFailed(
        f"task {task.id} ({task.name}) ended as {task.state} in attempt {task.attempt}{said}. "
        "`handle.history()` has every attempt; `handle.retry()` starts it again.",
        task_id=task.id,
        state=task.state,
        error=error,
    )
