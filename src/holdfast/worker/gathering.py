"""Gathers what was claimed of tasks that are run in batches, until a batch is full or its time has
come.

Gathered claims are leased like all others: the worker's heartbeats keep them. There is one batch of
a definition that fills; a full one goes to the buffer, where it counts as one thing to start. A
member whose neighbours could be harmed by it, or it by them, is a batch of its own: whose worker
died before (nobody knows which of many did it), and who has no other attempt left.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from holdfast.core.attempt import Claim
from holdfast.core.task import TaskId, WorkerId
from holdfast.definitions.batch import BatchRule
from holdfast.definitions.registry import Registry
from holdfast.worker.batch_claim import BatchClaim


class _Filling:
    """A batch that is not full yet."""

    __slots__ = ("claims", "since")

    def __init__(self) -> None:
        self.claims: deque[Claim] = deque()
        self.since = time.monotonic()

    def taken(self) -> list[Claim]:
        """Take all of them out; whoever else does so meanwhile gets others."""
        found: list[Claim] = []
        with suppress(IndexError):
            while True:
                found.append(self.claims.popleft())
        return found


class Gatherer:
    """The batches that fill. Loop-thread only, but for `seize` and `holds`.

    `ready` is given a batch whose time has come, and when its first member was claimed.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        registry: Registry,
        ready: Callable[[BatchClaim, float], None],
    ) -> None:
        self._loop = loop
        self._registry = registry
        self._ready = ready
        self._filling: dict[str, _Filling] = {}
        self.names: Collection[str] = registry.batched
        self.per_run = 1
        """How many claims one start takes, by what was claimed last. It grows by and by: what else
        stands in line must not be claimed by the hundred.
        """

    def __len__(self) -> int:
        return sum(len(one.claims) for one in self._filling.copy().values())

    def holds(self) -> set[TaskId]:
        """The tasks that wait here."""
        fillings = list(self._filling.copy().values())
        return {claim.task_id for one in fillings for claim in one.claims.copy()}

    def take(self, claims: Sequence[Claim]) -> list[Claim]:
        """Keep the members among these; those that are none, and batches that are full now, come
        back.
        """
        back: list[Claim] = []
        per_run = 0
        for claim in claims:
            if claim.name not in self.names:
                per_run = 1
                back.append(claim)
                continue
            most = self._rule(claim.name).max
            per_run = most if per_run == 0 else min(per_run, most)
            if is_better_alone(claim):
                back.append(BatchClaim.gathered([claim]))
            elif len((filling := self._filling_of(claim.name)).claims) + 1 < most:
                filling.claims.append(claim)
            else:
                del self._filling[claim.name]
                back.append(BatchClaim.gathered([*filling.taken(), claim]))
        if per_run:
            self.per_run = min(per_run, 2 * self.per_run)
        return back

    def flush(self) -> None:
        """Nothing more is to be had: start with what there is."""
        for name, filling in list(self._filling.items()):
            self._start(name, filling)

    def seize(self) -> list[Claim]:
        """Take all of them off, from any thread."""
        return [claim for one in self._filling.copy().values() for claim in one.taken()]

    def withdraw(self, task_ids: Collection[TaskId]) -> list[Claim]:
        """Take these off: they must not start."""
        return self._without(lambda claim: claim.task_id in task_ids)

    def drop(self, worker_id: WorkerId) -> None:
        """Forget what was claimed under an id that is gone."""
        self._without(lambda claim: claim.worker_id == worker_id)

    def _without(self, is_meant: Callable[[Claim], bool]) -> list[Claim]:
        found: list[Claim] = []
        for filling in self._filling.values():
            for claim in filter(is_meant, filling.claims.copy()):
                with suppress(ValueError):  # seized this moment
                    filling.claims.remove(claim)
                    found.append(claim)
        return found

    def _filling_of(self, name: str) -> _Filling:
        filling = self._filling.get(name)
        if filling is None:
            filling = self._filling[name] = _Filling()
            self._loop.call_later(self._rule(name).within, self._start, name, filling)
        return filling

    def _rule(self, name: str) -> BatchRule:
        rule = self._registry[name].batch
        assert rule is not None
        return rule

    def _start(self, name: str, filling: _Filling) -> None:
        if self._filling.get(name) is filling:
            del self._filling[name]
            if claims := filling.taken():
                self._ready(BatchClaim.gathered(claims), filling.since)


def is_better_alone(claim: Claim) -> bool:
    """Whether it must not share a run: its worker died before, or it has no other attempt left."""
    is_last = 0 < claim.max_retries <= claim.charged
    return claim.crash_count > 0 or is_last
