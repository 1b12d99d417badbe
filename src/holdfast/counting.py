"""Counts what this process does with a store: whoever claims, settles, submits or fires says so.

Made for the hot path: tasks are counted by the batch, and of a single end of an attempt only three
words are noted. `tally_of` gives the same tally to all who work on one store here.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from holdfast.core import metrics
from holdfast.core.attempt import Claim, Claimed, Settlement
from holdfast.core.lifecycle import (
    Deferred,
    Dropped,
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    Unfit,
    WorkerLost,
)
from holdfast.core.metrics import Counts, Metric
from holdfast.core.priority import MICROSECONDS, Aging
from holdfast.core.task import AttemptEnd, Priority, State
from holdfast.ports.store import TaskStore

_STATUS: Final[dict[type[Outcome], str]] = {
    Succeeded: "completed", Failed: "error", TimedOut: "timeout", WorkerLost: "worker_lost",
    Stopped: "cancelled", Released: "released", Deferred: "released", Unfit: "released",
    Dropped: "cancelled",
}  # fmt: skip
_STATE: Final = attrgetter("state")
_ATTEMPT: Final = attrgetter("attempt")
_PRIORITY: Final = attrgetter("priority")
_LOCK: Final = attrgetter("lock")
_FIRST, _HOW, _SECONDS = itemgetter(0), itemgetter(1), itemgetter(2)

K = TypeVar("K")
V = TypeVar("V")
_TRIED_AGAIN: Final = (AttemptEnd.ERROR, AttemptEnd.TIMEOUT, AttemptEnd.WORKER_LOST)
CLOCK_HOLDS: Final = 60.0
"""Seconds that the store's clock is reckoned on from here before it is asked again."""


class StoreClock:
    """The store's time, reckoned from this host's monotonic clock in between: for waits of tasks,
    where a few milliseconds are nothing. Nobody is judged by it.
    """

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self._asked_at: float | None = None
        self._ahead = 0

    async def now_us(self) -> int:
        """Microseconds since 1970, by the store's clock."""
        here = time.monotonic()
        if self._asked_at is None or here - self._asked_at > CLOCK_HOLDS:
            now = await self._store.now()
            here = time.monotonic()
            self._ahead = round(now.timestamp() * MICROSECONDS) - int(here * MICROSECONDS)
            self._asked_at = here
        return self._ahead + int(here * MICROSECONDS)


class Tally:
    """The counts of this process. From any thread."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._taken = Counts()
        self._lock = threading.Lock()
        self.ended: list[tuple[Priority, type[Outcome], float]] = []
        """Attempts that have ended here: priority, how, and after how many seconds. Counted with
        the next batch."""

    def counts(self) -> Counts:
        """All that was counted so far."""
        self._count_ended()
        with self._lock:
            return self._counts.copy()

    def take(self) -> Counts:
        """What was counted since somebody last took it: of several who keep it, each keeps a part,
        and nobody what another has.
        """
        self._count_ended()
        with self._lock:
            fresh = self._counts.since(self._taken)
            self._taken = self._counts.copy()
        return fresh

    def add(self, metric: Metric, *labels: str, by: float = 1) -> None:
        if by:
            with self._lock:
                self._counts.add(metric, *labels, by=by)

    def observe(self, metric: Metric, *labels: str, values: Sequence[float]) -> None:
        if values:
            with self._lock:
                self._counts.observe(metric, *labels, values=values)

    @contextmanager
    def timed(self, operation: str) -> Iterator[None]:
        """How long the store takes for what is done inside; what fails is not counted."""
        began = time.perf_counter()
        yield
        self.observe(metrics.LATENCY, operation, values=(time.perf_counter() - began,))

    def claimed(self, claimed: Claimed, now_us: int, aging: Aging) -> None:
        """These were started, at this instant of the store's clock."""
        claims, ranks = claimed.claims, claimed.ranks
        self.add(metrics.TASK_STATES, State.RUNNING.value, by=len(claims))
        if len(ranks) != len(claims):
            return  # a store of somebody else's that does not tell them
        attempts = list(map(_ATTEMPT, claims))
        if attempts.count(1) < len(attempts):
            first = [attempt == 1 for attempt in attempts]
            claims, ranks = list(compress(claims, first)), list(compress(ranks, first))
        for priority, line in _parted(claims, _PRIORITY, ranks):
            begun = now_us - aging.head_start(priority)
            waits = [(begun - rank) / MICROSECONDS for rank in line]
            if waits[-1] < 0:  # the clock of the store is reckoned here
                waits = [max(0.0, wait) for wait in waits]
            self.observe(metrics.WAITS, priority.value, values=waits)
            self._promoted(priority, waits[0], line, now_us, aging)
        locks = list(map(_LOCK, claims))
        if locks.count(None) < len(locks):
            locked = [one for one in zip(claims, ranks, strict=True) if one[0].lock is not None]
            self.observe(metrics.LOCK_WAITS, values=[
                max(0, now_us - aging.head_start(claim.priority) - rank) / MICROSECONDS
                for claim, rank in locked
            ])  # fmt: skip

    def saved(self, settlements: Sequence[Settlement]) -> None:
        """These ends of attempts are on disk."""
        self._count_ended()
        for state, some in _parted(settlements, _STATE, settlements):
            self.add(metrics.TASK_STATES, state.value, by=len(some))

    def went_wrong(self, claim: Claim, settlement: Settlement) -> None:
        """An attempt ended that was no success."""
        if settlement.state in (State.FAILED, State.DEAD_LETTER):
            reason = settlement.reason or settlement.ended
            self.add(metrics.FAILED, reason.value)
            if settlement.state is State.DEAD_LETTER:
                self.add(metrics.DEAD)
        elif settlement.cause is not None and settlement.ended in _TRIED_AGAIN:
            self.add(metrics.RETRIES, settlement.ended.value, claim.priority.value)

    def _promoted(
        self, own: Priority, longest: float, ranks: Sequence[int], now_us: int, aging: Aging
    ) -> None:
        steps = aging.steps(own)
        if steps and longest >= steps[-1][1]:
            worth = Counter(aging.effective(rank, now_us) for rank in ranks)
            worth.pop(own, None)
            for priority, number in worth.items():
                self.add(metrics.PROMOTED, own.value, priority.value, by=number)

    def _count_ended(self) -> None:
        if not self.ended:
            return
        with self._lock:  # others may count too, and append meanwhile
            ended = self.ended[:]
            del self.ended[: len(ended)]
        for how, some in _parted(ended, _HOW, ended):
            for priority, seconds in _parted(some, _FIRST, map(_SECONDS, some)):
                self.observe(metrics.DURATIONS, priority.value, _STATUS[how], values=seconds)


def _parted(
    items: Sequence[Any], word: Callable[[Any], K], values: Iterable[V]
) -> Iterable[tuple[K, list[V]]]:
    """The values by a word of their items. Nearly always it is the same word for all, and to find
    that out costs much less than to look each of them up: an enum's hash is slow.
    """
    if not items:
        return ()
    words = list(map(word, items))
    if words.count(words[0]) == len(words):
        return ((words[0], list(values)),)
    found: defaultdict[K, list[V]] = defaultdict(list)
    for each, value in zip(words, values, strict=True):
        found[each].append(value)
    return found.items()


_tallies: WeakKeyDictionary[object, Tally] = WeakKeyDictionary()


def tally_of(store: object) -> Tally:
    """The tally of this process for this store, whichever of its faces the caller sees."""
    return _tallies.setdefault(store, Tally())
