"""A body that has returned, of a task that ends after its children.

Its success is no end: in one settlement its result becomes a record, its new children are stored,
and the task stands behind the latch that its children count down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.core.attempt import Claim
from holdfast.core.flow import IN_PAYLOAD, Body, body_latch, children_latch, flow_of
from holdfast.core.gate import Count, GateKind, gate_name
from holdfast.core.lifecycle import Deferred, Outcome, Succeeded
from holdfast.core.record import Put
from holdfast.core.task import NewTask, TaskId

BODY: Final = "body"
"""The kind of records that hold what the body of a parent returned. The key is the parent."""


def latch_of_children(parent_id: TaskId) -> str:
    """The name of the latch that a parent's children count down."""
    return gate_name(GateKind.LATCH, children_latch(parent_id))


def latch_of_body(parent_id: TaskId) -> str:
    """The name of the latch that opens when a parent's body has returned."""
    return gate_name(GateKind.LATCH, body_latch(parent_id))


def as_child(new: NewTask, parent_id: TaskId) -> NewTask:
    """The task as a child of that one. A notice tells of its own task's end, and is none."""
    if new.parent_id is not None:
        return new
    return new._replace(parent_id=parent_id, counts=(*new.counts, latch_of_children(parent_id)))


def is_body_first(claim: Claim) -> bool:
    """Whether its payload says that its children come after its body."""
    flow = flow_of(claim.payload) if IN_PAYLOAD in claim.payload else None
    return flow is not None and flow.children is not None and flow.children.body is Body.BEFORE


def waits_for_children(claim: Claim, follow_ups: Sequence[NewTask]) -> bool:
    """Whether it ends only after children: those that it brings along, or was submitted with."""
    return is_body_first(claim) or any(new.parent_id == claim.task_id for new in follow_ups)


def after_its_body(claim: Claim, outcome: Outcome, keep: float) -> Outcome:
    """What a handler's outcome means for a task that may have children. A success without `also`
    is one of a task that has none.
    """
    if not isinstance(outcome, Succeeded) or outcome.also is None:
        return outcome
    latch = latch_of_children(claim.task_id)
    also = outcome.also
    if not waits_for_children(claim, also.tasks):
        return outcome
    children = sum(latch in new.counts for new in also.tasks)
    counts = [Count(latch, children)] if children else []
    if is_body_first(claim):
        counts.append(Count(latch_of_body(claim.task_id), -1))
    result = Put(BODY, claim.task_id, outcome.result.decode(), due_in=keep)
    also = also._replace(records=(*also.records, result), counts=(*also.counts, *counts))
    return Deferred(behind=latch, also=also)
