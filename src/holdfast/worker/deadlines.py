"""Every timeout of a worker on one heap with one timer.

A timer per run (`asyncio.timeout`) costs as much as all the rest of a short task. Here a run that
ends in time leaves its entry behind; leftovers are swept out when they outnumber the live ones.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from itertools import count

from holdfast.worker.run import Run, StopReason

_Entry = tuple[float, int, Run]


class Deadlines:
    """Stops runs whose time is up. Loop-thread only, but for `moved`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[_Entry] = []
        self._watched = 0
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def watch(self, run: Run) -> None:
        """Stop this run when its deadline passes, wherever the deadline is by then."""
        self._watched += 1
        run.on_extend = self.moved
        self._push(run)

    def forget(self, run: Run) -> None:
        """The run has ended. Every watched run must be forgotten once."""
        run.ended = True
        self._watched -= 1
        if len(self._heap) > 64 + 4 * self._watched:
            self._heap = [entry for entry in self._heap if not entry[2].ended]
            heapq.heapify(self._heap)

    def moved(self, run: Run) -> None:
        """A run's deadline has changed, maybe to an earlier one. From any thread."""
        self._loop.call_soon_threadsafe(self._push, run)

    def close(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _push(self, run: Run) -> None:
        if run.ended or run.deadline is None:
            return
        heapq.heappush(self._heap, (run.deadline, next(self._numbers), run))
        self._arm()

    def _arm(self) -> None:
        at = self._heap[0][0]
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_later(max(0.0, at - time.monotonic()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = time.monotonic()
        while self._heap and self._heap[0][0] <= now:
            _, _, run = heapq.heappop(self._heap)
            if not run.ended:
                self._judge(run, now)
        if self._heap:
            self._arm()

    def _judge(self, run: Run, now: float) -> None:
        deadline = run.deadline
        if deadline is None or deadline <= now:
            run.stop(StopReason.TIMED_OUT)
        else:
            heapq.heappush(self._heap, (deadline, next(self._numbers), run))
