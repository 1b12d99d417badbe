"""How many sleeping workers to call for tasks that have become ready."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from holdfast.ports.dispatcher import EVERYBODY


def callees(ready: Iterable[tuple[str, Collection[str], int]]) -> dict[str, int]:
    """By queue, for (queue, what its tasks require, how many of them are ready)."""
    counts: dict[str, int] = {}
    for queue, requires, number in ready:
        # Whoever sleeps longest may be one that lacks what is required.
        more = EVERYBODY if requires else number
        counts[queue] = min(EVERYBODY, counts.get(queue, 0) + more)
    return counts


Tell = Callable[[Mapping[str, int]], None]


def tell_nobody(_queues: Mapping[str, int]) -> None:
    """What `Store.passed_on` is until somebody sets it."""
