"""How long a task is offered that the workers' code is not fit for.

In a deploy old and new code run side by side. A task of a name that a worker does not know goes to
those that know it (`fleet.knows`), and waits for them if there are none. One whose arguments a
worker's function does not take is offered again, to whoever asks; its worker stands back for the
others. That is a second later for some times, then after twice as long each time. Neither charges
an attempt. Both are given up, as dead letters, once they were
offered in vain for `unknown_task_grace` seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from holdfast.core.attempt import Attempt, History, Settlement
from holdfast.core.fleet import ALIVE, WorkerInfo, knows, unknown_name

UNFIT: Final = "UnfitArguments"
"""The type of the error that an attempt ends with whose arguments did not fit."""
SOONEST: Final = 1.0
LATEST: Final = 60.0
"""Seconds until a task is offered again: at first, and at most."""
AT_FIRST: Final = 10
"""How often that is soon: if one of ten workers is fit, it should not take minutes to find it."""


def offered_again_in(history: History, grace: float) -> float | None:
    """In how many seconds a task is offered again whose arguments did not fit once more; None if
    it has been so for `grace` seconds, by the store's clock, since it was last begun anew.
    """
    requeued = [event.at for event in history.events if event.kind == "requeued"]
    refused = [each for each in history.attempts if _was_unfit(each, max(requeued, default=None))]
    if not refused:
        return SOONEST
    waited = history.attempts[-1].started_at - refused[0].started_at
    if waited.total_seconds() >= grace:
        return None
    doublings = min(max(0, len(refused) - AT_FIRST + 1), 10)
    return min(SOONEST * 2.0**doublings, LATEST)


def is_unfit(ended: Attempt | Settlement) -> bool:
    """Whether an attempt ended because the arguments did not fit."""
    return ended.error is not None and ended.error.type == UNFIT


def _was_unfit(attempt: Attempt, since: datetime | None) -> bool:
    return is_unfit(attempt) and (since is None or attempt.started_at >= since)


def unknown_names(demand: Mapping[frozenset[str], int]) -> dict[str, int]:
    """The tasks that only workers who know them may take, and how many of each there are."""
    asked = Counter[str]()
    for requires, number in demand.items():
        for name in filter(None, map(unknown_name, requires)):
            asked[name] += number
    return dict(asked)


def is_known(name: str, workers: Collection[WorkerInfo]) -> bool:
    """Whether a worker that is alive knows the task."""
    return any(w.status in ALIVE and knows(name) in w.capabilities for w in workers)


def unknown_since(name: str, workers: Collection[WorkerInfo], grace: float) -> datetime | None:
    """If no worker has known the task for `grace` seconds: the latest instant of the store's clock
    that lies so far back for sure. None if one knows it, or did so lately; or if nobody is there.

    The latest heartbeat of all is taken for now: it is no later than that.
    """
    beats = [worker.beat_at for worker in workers if worker.beat_at is not None]
    if not any(worker.status in ALIVE for worker in workers) or not beats:
        return None
    if is_known(name, workers):
        return None
    long_ago = max(beats) - timedelta(seconds=grace)
    knew = [w.beat_at for w in workers if knows(name) in w.capabilities and w.beat_at is not None]
    return None if knew and max(knew) > long_ago else long_ago
