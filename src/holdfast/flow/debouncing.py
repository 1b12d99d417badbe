"""A debounced task may run only while the record of its key names it.

A submit writes that record in one commit with its task, and cancels the one before afterwards. So
whatever dies in between, at most the newest one runs: an older one that is claimed all the same is
dropped.
"""

from __future__ import annotations

from holdfast.core.coalescing import CoalescingKind, Newest
from holdfast.core.flow import Flow
from holdfast.core.lifecycle import Dropped
from holdfast.core.task import Reason, TaskError, TaskId
from holdfast.ports.records import RecordStore, one_record


async def superseded_by(store: RecordStore, flow: Flow, task_id: TaskId) -> TaskId | None:
    """The newer task of the same key in whose favour this one must not run, if there is one."""
    if flow.debounce is None:
        return None
    record = await one_record(store, CoalescingKind.DEBOUNCE, flow.debounce)
    if record is None:
        return None
    newest = Newest.of(record).task_id
    return None if newest == task_id else newest


async def superseded(store: RecordStore, flow: Flow, task_id: TaskId) -> Dropped | None:
    """Why a debounced task must not run; None if it may."""
    newer = await superseded_by(store, flow, task_id)
    if newer is None:
        return None
    message = f"task {newer} was submitted after it"
    return Dropped(
        Reason.SUPERSEDED, TaskError(type="Superseded", message=message, retriable=False)
    )
