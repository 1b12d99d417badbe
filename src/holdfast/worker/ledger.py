"""Turns outcomes into settlements, says so in the log, and wakes whoever waits for the result.

`core.lifecycle.settle` decides; this is where its answer is entered. A settlement can make other
work ready: a task handed back, a retry that is due soon, the next in line for a lock. Nobody
submits those, so nobody wakes a worker for them: that happens here, once they are on disk. Who is
next for a lock only the store knows, and it may be of another queue: the `Herald` asks.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from holdfast.announcing import Gate, announce
from holdfast.core.attempt import Claim, Settlement
from holdfast.core.lifecycle import Backoff, Outcome, Succeeded, settle
from holdfast.core.task import TaskId
from holdfast.core.unfit import is_unfit
from holdfast.definitions.registry import AnyDefinition, Registry
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import EVERYBODY
from holdfast.settings import Settings

log = EventLog("holdfast.worker")

AT_ONCE = 0.01
"""Work that is due within this many seconds is announced to other workers too."""


class _Echo(NamedTuple):
    """What must be known of an attempt once its end is on disk."""

    queue: str
    lock: str | None
    is_forgotten: bool


class Ledger:
    """Enters how attempts ended."""

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        *,
        save: Callable[[Settlement], None],
        wake: Callable[[Mapping[str, int]], None],
        nudge: Callable[[float], None],
        let_go: Callable[[Collection[str]], None],
        forget: Callable[[TaskId], None],
        gate: Gate,
    ) -> None:
        self._registry = registry
        self._forgetful = registry.forgetful
        self._forget = forget
        self._crash_limit = settings.crash_limit
        self._policy = settings.retry_policy
        self._save = save
        self._wake = wake
        self._nudge = nudge
        self._let_go = let_go
        self._gate = gate
        self._echoes: dict[tuple[TaskId, int], _Echo] = {}

    def enter(self, claim: Claim, outcome: Outcome) -> None:
        """This attempt has ended thus."""
        if isinstance(outcome, Succeeded):
            settlement = settle(claim, outcome, backoff=_never, crash_limit=self._crash_limit)
            is_forgotten = claim.name in self._forgetful
            has_echo = is_forgotten or claim.lock is not None
            if self._gate.open:
                self._gate.completed(claim)
        else:
            is_forgotten = False
            settlement = self.decide(claim, outcome)
            has_echo = claim.lock is not None or settlement.cause is not None
            announce(log, claim, settlement)
        if has_echo:
            self._echoes[claim.task_id, claim.attempt] = _Echo(
                claim.queue, claim.lock, is_forgotten
            )
        self._save(settlement)

    def decide(self, claim: Claim, outcome: Outcome) -> Settlement:
        """What the task becomes, for somebody else to save."""
        return settle(claim, outcome, backoff=self._backoff(claim), crash_limit=self._crash_limit)

    def completed(self, claim: Claim) -> None:
        """This one is on disk already, by its handler's own transaction."""
        if self._gate.open:
            self._gate.completed(claim)
        if claim.name in self._forgetful:
            self._forget(claim.task_id)
        if claim.lock is not None:
            self._nudge(0.0)
            self._let_go((claim.lock,))

    def saved(self, settlements: Sequence[Settlement]) -> None:
        """These are on disk: whatever they made ready may start."""
        if not self._echoes:
            return
        queues: Counter[str] = Counter()
        keys: set[str] = set()
        for one in settlements:
            echo = self._echoes.pop((one.task_id, one.attempt), None)
            if echo is None:
                continue
            if echo.is_forgotten:
                self._forget(one.task_id)
            if echo.lock is not None:
                keys.add(echo.lock)
                self._nudge(0.0)
            if one.cause is not None:
                if not is_unfit(one):
                    self._nudge(one.delay)
                # One with a lock that is ready again is among those who are next for it.
                if one.delay <= AT_ONCE and (echo.lock is None or one.delay > 0.0):
                    queues[echo.queue] += 1 if one.needs is None else EVERYBODY
        if queues:
            self._wake(queues)
        if keys:
            self._let_go(keys)

    def _backoff(self, claim: Claim) -> Backoff:
        definition: AnyDefinition | None = self._registry.get(claim.name)
        if definition is None:
            return _never  # it fails for good
        return definition.backoff(claim, random.random, self._policy)


def _never(_n: int) -> float:
    raise AssertionError("this task has ended; there is no next attempt to wait for")
