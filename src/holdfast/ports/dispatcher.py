"""Who wakes a sleeping worker. A hint, never the truth: losing every wake-up costs latency only,
because a worker polls the store underneath (`poll`, 1 s by default).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from operator import attrgetter
from typing import Final, Protocol

from holdfast.core.task import NewTask, Task

EVERYBODY: Final = 1 << 30
"""As many as sleep: for work that not every worker of the queue could take."""


_QUEUE: Final[Callable[[object], str]] = attrgetter("queue")


def work_for(tasks: Sequence[NewTask] | Sequence[Task]) -> Mapping[str, int]:
    """How many of the sleeping workers of each queue these are work for."""
    queues = Counter(map(_QUEUE, tasks))
    for task in tasks:
        if task.requires:  # whoever sleeps longest may be one that lacks it
            queues[task.queue] = EVERYBODY
    return queues


class Listener(Protocol):
    """Wakes one worker. Wake-ups that arrive between two waits are remembered, not lost."""

    async def wait(self, timeout: float) -> bool:
        """Sleep until woken or for `timeout` seconds; True if woken.

        A wake-up since the last wait returns at once. So the order is: listen, claim, and if that
        brought nothing, wait; a task submitted in between is not slept through.
        """
        ...


class Dispatcher(Protocol):
    """Carries wake-ups from submitters to workers. Safe from any thread and event loop."""

    def wake(self, queues: Mapping[str, int]) -> None:
        """Tell sleeping workers that there is work: for each queue, how many tasks.

        A dispatcher that can count wakes as many as that; others wake all. Never blocks, never
        raises.
        """
        ...

    def added(self, queues: Mapping[str, int]) -> None:
        """`Store.add` has stored so many tasks in each queue: `wake`, unless the store's own commit
        has told those who sleep by this dispatcher. Never blocks, never raises.
        """
        self.wake(queues)

    def added_within(self, queues: Mapping[str, int]) -> None:
        """The same for tasks in somebody's transaction, which will commit soon or never: a guess
        when that will be, where the commit is not heard and somebody could be woken.
        """
        return

    def listen(self, queues: Collection[str] | None) -> AbstractAsyncContextManager[Listener]:
        """Be woken for these queues (None: all) while the context is open."""
        ...

    async def mode(self) -> str:
        """How wake-ups travel, for `doctor`: `memory`, `sockets`, `listen`, `stream`, `redis`;
        `poll` if they do not, and a worker finds new work only by looking.
        """
        ...

    async def close(self) -> None:
        """Make the last calls, and let go of connections, sockets and files. Idempotent."""
        ...
