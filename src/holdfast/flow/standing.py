"""The facts about other tasks behind "why is my task not running?"."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.core.dropping import DROPPED, culprit_of
from holdfast.core.flow import body_latch, children_latch
from holdfast.core.gate import GateKind, key_of
from holdfast.core.query import TaskFilter
from holdfast.core.stats import Standing
from holdfast.core.task import Reason, TaskId
from holdfast.ports.records import one_record
from holdfast.ports.store import Store

MOST_COUNTED: Final = 1_000_000
_BODY: Final = body_latch(TaskId(""))


async def with_others(store: Store, standing: Standing) -> Standing:
    """The same standing, with what the task waits for, or who is to blame."""
    task, gate = standing.task, standing.gate
    if task.reason is Reason.DEPENDENCY_FAILED:
        note = await one_record(store, DROPPED, task.id)
        culprit = TaskId(note.group) if note else culprit_of(task)
        return (
            standing if culprit == task.id else replace(standing, culprit=await store.get(culprit))
        )
    if gate is None or gate.kind is not GateKind.LATCH or gate.is_open:
        return standing
    key = key_of(gate.name)
    if key == children_latch(task.id):
        number = await store.count(TaskFilter(parent_id=task.id), limit=MOST_COUNTED)
        return replace(standing, children=max(number, gate.left))
    return replace(standing, awaited=await store.get(TaskId(key.removesuffix(_BODY))))
