"""Whether a task may start after those it comes after, and who is to blame if not.

The one to blame is the *culprit*: the task that did not go well, not those that were dropped
because of it in between. An error names it at its beginning, so whoever sees one of a thousand
dropped tasks knows where to look, and the next in line need not look further. A record says for
each what was dropped because of it: what to start again when it is started again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from holdfast.core.flow import Dependency, When
from holdfast.core.gate import latch_of
from holdfast.core.lifecycle import TERMINAL, Deferred, Dropped, Failed, Outcome
from holdfast.core.record import Changes, Put
from holdfast.core.task import Reason, State, Task, TaskError, TaskId

DROPPED: Final = "dropped"
"""The kind of records that say what to start again: the culprit is the group, the task the key."""

BECAUSE_OF_DEPENDENCY: Final = "DependencyFailed"
BECAUSE_OF_CHILD: Final = "ChildFailed"
NOT_KEPT: Final = "ResultNotKept"
"""Types of errors."""

LONGEST_QUOTE: Final = 1000
"""Characters that are quoted of the culprit's own error."""

BAD_ENDS: Final = TERMINAL - {State.COMPLETED}
_BEGINNING: Final = re.compile(r"task ([0-9a-f-]{36}) ", re.ASCII).match


def culprit_of(task: Task) -> TaskId:
    """Who is to blame that this task did not go well: another one, or itself."""
    if task.error is not None and task.error.type in (BECAUSE_OF_DEPENDENCY, BECAUSE_OF_CHILD):
        found = _BEGINNING(task.error.message)
        if found is not None:
            return TaskId(found[1])
    return task.id


def blame(task: Task, kind: str = BECAUSE_OF_DEPENDENCY) -> TaskError:
    """The error of whoever cannot go on because of this task, or because of its culprit."""
    if culprit_of(task) != task.id and task.error is not None:
        return TaskError(type=kind, message=task.error.message, retriable=False)
    said = f": {task.error.type}: {task.error.message}" if task.error else ""
    message = f"task {task.id} ({task.name}) ended as {task.state}{said[:LONGEST_QUOTE]}"
    return TaskError(type=kind, message=message, retriable=False)


def remembered(task_id: TaskId, attempt: int, culprit: TaskId, keep: float) -> Changes:
    """Note that the task ended because of that one; for so many seconds."""
    return Changes(f"{task_id} {attempt} dropped", records=(note_of(task_id, culprit, keep),))


def note_of(task_id: TaskId, culprit: TaskId, keep: float) -> Put:
    """What to start again when the culprit is started again."""
    return Put(DROPPED, task_id, "{}", group=culprit, sort=task_id, due_in=keep)


def not_kept(task_id: TaskId) -> Failed:
    """What is needed of a task is gone for good."""
    message = (
        f"task {task_id} is not kept any more, so nobody knows how it ended or what it returned. "
        "Ended tasks are kept for `retention`; those with `keep=False` for a minute."
    )
    return Failed(TaskError(type=NOT_KEPT, message=message, retriable=False))


def unmet(
    dependencies: Iterable[Dependency], found: Mapping[TaskId, Task]
) -> tuple[Outcome, Task | None] | None:
    """Why a task cannot start now, and because of which one; None if it can.

    One that it comes after may have been started again meanwhile: then it waits for that end too.
    """
    not_needed: Outcome | None = None
    for task_id, when in dependencies:
        task = found.get(task_id)
        if task is None:
            return not_kept(task_id), None
        if task.state not in TERMINAL:
            return Deferred(behind=latch_of(task_id)), None
        went_wrong = did_not_go_well(task)
        if when is When.SUCCESS and went_wrong:
            return Dropped(Reason.DEPENDENCY_FAILED, blame(task)), task
        met = {
            When.ALWAYS: True,
            When.SUCCESS: task.state is State.COMPLETED,
            When.FAILURE: went_wrong,
        }
        if not met[when]:
            not_needed = Dropped(Reason.NOT_NEEDED, _not_needed(task, when))
    return None if not_needed is None else (not_needed, None)


def did_not_go_well(task: Task) -> bool:
    """Whether it should have completed and did not. What nobody needed did not fail."""
    return task.state in BAD_ENDS and task.reason is not Reason.NOT_NEEDED


def _not_needed(task: Task, when: When) -> TaskError:
    message = f"task {task.id} ({task.name}) ended as {task.state}, this one is for when={when}"
    return TaskError(type="NotNeeded", message=message, retriable=False)
