"""What comes before the run of a claimed task that has to do with others.

It may have to wait on, be dropped, or end without a run; else its arguments are completed with the
results of others. Whoever claims asks first whether there is anything to look at (`must_look`):
for nearly all tasks that is one search in their payload.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.core.attempt import Claim
from holdfast.core.dropping import blame, culprit_of, not_kept, remembered, unmet
from holdfast.core.flow import IN_PAYLOAD, Body, Flow, flow_of, with_values
from holdfast.core.lifecycle import Dropped, Outcome, Stopped
from holdfast.core.task import Cause, Reason, Task
from holdfast.flow.children import failed_child
from holdfast.flow.debouncing import superseded
from holdfast.flow.parents import Parents
from holdfast.flow.results import NotKept, named_by, read_tasks, values_of
from holdfast.ports.store import Store
from holdfast.settings import Settings

GOES_ON: Final = frozenset({Cause.RESUMED, Cause.WORKER_LOST, Cause.RELEASED, Cause.OPERATOR})
"""Causes of an attempt that may have to go on where the one before ended: its body has returned,
and its children have ended since.
"""

_NO_FLOW: Final = Flow()


def must_look(claim: Claim) -> bool:
    """Whether this task may have to do with others."""
    return IN_PAYLOAD in claim.payload or (claim.attempt > 1 and claim.cause in GOES_ON)


class Starter:
    """Looks at claims before they run."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._keep = settings.dead_letter_retention
        self._parents = Parents(store, settings)

    async def start(self, claim: Claim) -> Claim | Outcome:
        """The claim as it is to be run, or how its attempt ends without a run."""
        if claim.cancel_requested:
            return Stopped()
        flow = flow_of(claim.payload) or _NO_FLOW
        ended = await self._without_a_look_at_others(claim, flow)
        if ended is not None:
            return ended
        wanted = dict.fromkeys(
            [*(task_id for task_id, _ in flow.after), *named_by(flow.results.values())]
        )
        found = await read_tasks(self._store, wanted)
        held_up = unmet(flow.after, found)
        if held_up is not None:
            return self._because_of(claim, *held_up)
        if flow.body_of is not None:
            held_up = await self._parents.without_body(flow.body_of)
            if held_up is not None:
                return self._because_of(claim, *held_up)
        if flow.children is not None and flow.children.body is not Body.BEFORE:
            ended = await self._parents.after_children(claim, flow.children)
            if ended is not None:
                return ended
        try:
            values = await values_of(self._store, flow.results, found)
        except NotKept as gone:
            return not_kept(gone.task_id)
        return claim._replace(payload=with_values(claim.payload, values))

    async def _without_a_look_at_others(self, claim: Claim, flow: Flow) -> Outcome | None:
        """How it ends because of itself, its key or its siblings; None if it goes on."""
        if claim.attempt > 1 and claim.cause in GOES_ON:
            ended = await self._parents.after_body(claim, flow)
            if ended is not None:
                return ended
        if flow.rest_of is not None:
            sibling = await failed_child(self._store, flow.rest_of)
            if sibling is not None:
                dropped = Dropped(Reason.DEPENDENCY_FAILED, blame(sibling))
                return self._because_of(claim, dropped, sibling)
        return await superseded(self._store, flow, claim.task_id)

    def _because_of(self, claim: Claim, outcome: Outcome, task: Task | None) -> Outcome:
        """What is dropped is noted with its culprit."""
        if task is None or not isinstance(outcome, Dropped):
            return outcome
        if outcome.reason is not Reason.DEPENDENCY_FAILED:
            return outcome
        note = remembered(claim.task_id, claim.attempt, culprit_of(task), self._keep)
        return replace(outcome, also=note)
