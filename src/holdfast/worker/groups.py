"""The process groups of this worker's pool, told to whoever outlives the worker.

A process of the pool dies with its worker: the kernel sees to that. What the handler in it has
started (a video encoder, a compiler) would live on, and still write when the task runs again
elsewhere. So the heartbeat process or the supervisor knows the groups, and kills what is left.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress

Tell = Callable[[list[int]], None]


class Groups:
    """Which groups there are now, and who wants to know."""

    def __init__(self) -> None:
        self._groups: frozenset[int] = frozenset()
        self._listeners: list[Tell] = []

    def add(self, group: int) -> None:
        self._change(self._groups | {group})

    def remove(self, group: int) -> None:
        self._change(self._groups - {group})

    def tell(self, listener: Tell) -> None:
        """Tell this listener the groups, now and whenever they change."""
        self._listeners.append(listener)
        if self._groups:
            listener(sorted(self._groups))

    def forget(self, listener: Tell) -> None:
        with suppress(ValueError):
            self._listeners.remove(listener)

    def current(self) -> list[int]:
        return sorted(self._groups)

    def _change(self, groups: frozenset[int]) -> None:
        if groups != self._groups:
            self._groups = groups
            for listener in tuple(self._listeners):
                listener(sorted(groups))


GROUPS = Groups()
"""Those of this process."""


def kill_groups(groups: Iterable[int]) -> None:
    """Kill what is left of these groups."""
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
