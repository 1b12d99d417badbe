"""Wake-ups by change streams: one per process, while somebody in it sleeps.

Whatever makes work for a queue is a committed write to a task, and the server tells it to those who
watch: the store says which writes (`stores/mongo/watching.py`). So nobody calls. A submit does not
ask who sleeps and writes no more than its task, and a process that only submits has no part in
this.

A stream costs the server a look at each write, so there is none while a process is busy, and it
begins anew, with a look for work, when the process goes to sleep (`dispatch/sleepers.py`).

A server that has no change streams, or none for this account, is asked once; workers poll then, and
`mode` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from holdfast.dispatch.mongo.connection import Watching
from holdfast.dispatch.mongo.wakeups import MongoWakeups
from holdfast.dispatch.sleepers import SleeperDispatcher


class MongoDispatcher(SleeperDispatcher[MongoWakeups]):
    """Wakes the workers of one store, wherever they are.

    Args:
        watching: makes what opens streams; called on the event loop that is to use it.
    """

    def __init__(self, watching: Callable[[], Watching]) -> None:
        self._watching = watching
        super().__init__()

    def wake(self, queues: Collection[str]) -> None:
        """The write that made the work ready calls other processes."""
        self._wake_here(queues)

    def _new_wakeups(self) -> MongoWakeups:
        return MongoWakeups(self._watching, listeners=lambda: self._listeners, let_go=self._let_go)
