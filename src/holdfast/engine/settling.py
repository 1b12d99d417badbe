"""Settles attempts at once, for whoever ends a few at a time and must know which of them count.

A worker, which ends thousands a second, gathers them instead (`worker/settler.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holdfast.announcing import Announcer
from holdfast.core.attempt import Claim, Refusal
from holdfast.core.lifecycle import Outcome
from holdfast.core.metrics import LEASES_LOST
from holdfast.core.task import TaskId
from holdfast.counting import tally_of
from holdfast.engine.judging import Judge
from holdfast.engine.waking import Waker
from holdfast.ports.store import TaskStore


class Settling:
    """Judge, save, say so in the log, wake whoever became ready."""

    def __init__(
        self,
        store: TaskStore,
        judge: Judge,
        waker: Waker,
        announcer: Announcer,
        *,
        on_saved: Callable[[Claim, Outcome], None] = lambda _claim, _outcome: None,
    ) -> None:
        """`on_saved` is told of each that was saved."""
        self._on_saved = on_saved
        self._store = store
        self._tally = tally_of(store)
        self._judge = judge
        self._waker = waker
        self._announcer = announcer

    async def settle(self, ended: Sequence[tuple[Claim, Outcome]]) -> Mapping[TaskId, Refusal]:
        """These attempts of different tasks have ended thus. Returns those that were refused, since
        somebody else was faster, or because what they bring along clashes: nothing is said of them,
        and nobody is woken.
        """
        pairs = [(claim, self._judge.settle(claim, outcome)) for claim, outcome in ended]
        if not pairs:
            return {}
        refusals = await self._store.save([settlement for _, settlement in pairs])
        refused = {refusal.task_id: refusal for refusal in refusals}
        saved = [pair for pair in pairs if pair[0].task_id not in refused]
        self._tally.saved([settlement for _, settlement in saved])
        self._tally.add(LEASES_LOST, by=sum(one.conflict is None for one in refusals))
        for pair in saved:
            self._announcer.ended(*pair)
            self._tally.went_wrong(*pair)
        for claim, outcome in ended:
            if claim.task_id not in refused:
                self._on_saved(claim, outcome)
        self._waker.saved((claim.queue, claim.lock, settled) for claim, settled in saved)
        return refused
