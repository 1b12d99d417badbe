"""How much work to hold: bounded by time, not by count.

A worker holds no more unstarted tasks than it expects to start within `HORIZON`. So a thousand
no-ops are fetched at once, and not a single video encoding beyond the free slots. Two things limit
how fast tasks start: the slots (each is occupied for a task's whole duration) and the event loop
(one thread, occupied while a body computes). Both are measured.
"""

from __future__ import annotations

from collections.abc import Iterable

HORIZON = 0.1
MOST = 2000
MOST_BYTES = 32 * 1024 * 1024


class Pace:
    """Measures durations, and guesses from them how many tasks start within the horizon."""

    __slots__ = ("_computing", "_ended", "_mean", "_occupied", "_payload", "_serial", "_slots")

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._ended = 0
        self._occupied = 0.0
        self._computing = 0.0
        self._mean: float | None = None
        self._serial = 0.0
        self._payload = 0.0

    def ended(self, occupied: float, computing: float) -> None:
        """A task held its slot for `occupied` seconds, and the loop for `computing` of them."""
        self._ended += 1
        self._occupied += occupied
        self._computing += computing

    def received(self, count: int, size: int) -> None:
        """A claim brought `count` tasks with `size` bytes of payload in all."""
        if count:
            self._payload += (size / count - self._payload) * 0.3

    def ahead(self, ages: Iterable[float]) -> int:
        """How many tasks will start within the horizon.

        `ages` says how long each task now running has been at it: a slot held longer than the mean
        will hardly be free sooner than that again. Nothing measured yet means nothing ahead.
        """
        self._fold()
        if self._mean is None:
            return 0
        mean = max(self._mean, 1e-6)
        old = [age for age in ages if age > mean]
        starts = (self._slots - len(old)) / mean + sum(1 / age for age in old)
        starts = min(starts, 1 / max(self._serial, 1e-6))
        return min(MOST, int(starts * HORIZON), int(MOST_BYTES / max(self._payload, 1.0)))

    def bounded(self, count: int) -> int:
        """No more than this many, nor than fit into memory."""
        return min(count, MOST, max(1, int(MOST_BYTES / max(self._payload, 1.0))))

    def _fold(self) -> None:
        if not self._ended:
            return
        mean, serial = self._occupied / self._ended, self._computing / self._ended
        if self._mean is None:
            self._mean, self._serial = mean, serial
        else:
            weight = self._ended / (self._ended + 2 * self._slots)
            self._mean += (mean - self._mean) * weight
            self._serial += (serial - self._serial) * weight
        self._ended, self._occupied, self._computing = 0, 0.0, 0.0
