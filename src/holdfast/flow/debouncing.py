"""A debounced task may run only while the record of its key names it.

A submit writes that record in one commit with its task, and cancels the one before afterwards. So
whatever dies in between, at most the newest one runs: an older one that is claimed all the same is
dropped.
"""

from __future__ import annotations

from holdfast.core.attempt import Claim
from holdfast.core.coalescing import CoalescingKind, Newest
from holdfast.core.flow import Flow, flow_of, without_flow
from holdfast.core.lifecycle import Dropped
from holdfast.core.task import Reason, TaskError, TaskId
from holdfast.ports.records import RecordStore


async def superseded_by(store: RecordStore, flow: Flow, task_id: TaskId) -> TaskId | None:
    """The newer task of the same key in whose favour this one must not run, if there is one."""
    if flow.debounce is None:
        return None
    record = await store.record(CoalescingKind.DEBOUNCE, flow.debounce)
    if record is None:
        return None
    newest = Newest.of(record).task_id
    return None if newest == task_id else newest


async def is_superseded(store: RecordStore, flow: Flow, task_id: TaskId) -> bool:
    """Whether a newer task of the same key was submitted."""
    return await superseded_by(store, flow, task_id) is not None


async def looked_at(store: RecordStore, claim: Claim) -> Claim | Dropped:
    """A claim whose payload has a flow: as it may run, or why it must not."""
    flow = flow_of(claim.payload)
    if flow is None:
        return claim
    newer = await superseded_by(store, flow, claim.task_id)
    if newer is None:
        return claim._replace(payload=without_flow(claim.payload, {}))
    return Dropped(
        Reason.SUPERSEDED,
        TaskError(
            type="Superseded", message=f"task {newer} was submitted after it", retriable=False
        ),
    )
