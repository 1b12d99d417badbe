"""Takes the outcomes of a worker's attempts: each becomes a settlement, which the settler saves.
Once that is on disk the engine wakes whoever became ready, and chores that it left are done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.announcing import Announcer
from holdfast.core.attempt import Claim, Refusal, Settlement
from holdfast.core.chore import has_chores
from holdfast.core.lifecycle import Deferred, Outcome, Succeeded, settle
from holdfast.core.metrics import TASK_STATES
from holdfast.core.task import State, TaskId
from holdfast.counting import Tally
from holdfast.definitions.registry import Registry
from holdfast.engine.judging import Judge, no_retry, refused_follow_up
from holdfast.engine.waking import Ended, Waker
from holdfast.flow.breakers import Breakers
from holdfast.settings import Settings


class _Remembered(NamedTuple):
    """What must be known of an attempt once its end is on disk."""

    claim: Claim
    is_forgotten: bool
    sleeps: bool = False


class Outcomes:
    """Enters how attempts ended."""

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        *,
        save: Callable[[Settlement], None],
        waker: Waker,
        forget: Callable[[TaskId], None],
        hurry: Callable[[], None],
        announcer: Announcer,
        tally: Tally,
        breakers: Breakers,
    ) -> None:
        self._tally = tally
        self._breakers = breakers
        self._forgetful = registry.forgetful
        self._forget = forget
        self._hurry = hurry
        self._save = save
        self._waker = waker
        self._announcer = announcer
        self._remembered: dict[tuple[TaskId, int], _Remembered] = {}
        self.decide = Judge(registry, settings).settle
        """What the task becomes, for somebody else to save."""

    def enter(self, claim: Claim, outcome: Outcome) -> Settlement:
        """This attempt has ended thus; what its task becomes."""
        if self._breakers.is_used:
            self._breakers.ended(claim, outcome)
        if isinstance(outcome, Succeeded):
            settlement = settle(claim, outcome, backoff=no_retry, crash_limit=1)
            is_forgotten, sleeps = claim.name in self._forgetful, False
            must_remember = is_forgotten or claim.lock is not None or outcome.also is not None
            if self._announcer.open:
                self._announcer.completed(claim)
        else:
            is_forgotten = False
            settlement = self.decide(claim, outcome)
            must_remember = (
                settlement.state is not State.COMPLETED
                or claim.lock is not None
                or has_chores(settlement)
            )
            sleeps = isinstance(outcome, Deferred) and outcome.behind is None
            self._announcer.ended(claim, settlement)
        if must_remember:
            self._remembered[claim.task_id, claim.attempt] = _Remembered(
                claim, is_forgotten, sleeps
            )
        self._save(settlement)
        return settlement

    def completed(self, claim: Claim) -> None:
        """This one is on disk already, by its handler's own transaction."""
        self._tally.add(TASK_STATES, State.COMPLETED.value)
        if self._breakers.is_used:
            self._breakers.ended(claim, Succeeded(b"null"))
        if self._announcer.open:
            self._announcer.completed(claim)
        if claim.name in self._forgetful:
            self._forget(claim.task_id)
        if claim.lock is not None:
            self._waker.let_go()

    def clashed(self, refusal: Refusal) -> None:
        """What its handler submitted cannot be, so neither can its success. What it was about to
        wait for has come: then it goes on at once.
        """
        known = self._remembered.pop((refusal.task_id, refusal.attempt), None)
        if known is not None:
            self.enter(known.claim, Deferred() if known.sleeps else refused_follow_up(refusal))

    def saved(self, settlements: Sequence[Settlement]) -> None:
        """These are on disk: whatever they made ready may start."""
        if not self._remembered:
            return
        ended: list[Ended] = []
        for one in settlements:
            known = self._remembered.pop((one.task_id, one.attempt), None)
            if known is not None:
                ended.append((known.claim.queue, known.claim.lock, one))
                self._tally.went_wrong(known.claim, one)
                if known.is_forgotten:
                    self._forget(one.task_id)
                if has_chores(one):
                    self._hurry()
        self._waker.saved(ended)
