"""What spans are called and what they say, in the words of OpenTelemetry's conventions for
messaging where those have one. Nothing of a task's arguments or result.
"""

from __future__ import annotations

from typing import Final, assert_never

import orjson

from holdfast.core import delivery
from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import (
    Deferred,
    Dropped,
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    Unfit,
    WorkerLost,
)
from holdfast.core.task import AttemptEnd, Cause, NewTask, TaskError

Attributes = dict[str, str | int]

SYSTEM: Final = "messaging.system"
OPERATION: Final = "messaging.operation.name"
KIND: Final = "messaging.operation.type"
QUEUE: Final = "messaging.destination.name"
TASK_ID: Final = "messaging.message.id"
NUMBER: Final = "messaging.batch.message_count"
TASK_NAME: Final = "holdfast.task_name"
ENDED: Final = "holdfast.ended"
ERROR_TYPE: Final = "error.type"


def of_submit(operation: str, tasks: list[NewTask]) -> tuple[str, Attributes]:
    """The name and attributes of the span in which these are submitted."""
    first = tasks[0]
    said: Attributes = {SYSTEM: "holdfast", OPERATION: operation, KIND: "send"}
    if len(tasks) == 1:
        said |= {TASK_ID: first.id, "holdfast.priority": first.priority.value}
    else:
        said[NUMBER] = len(tasks)
    if all(task.queue == first.queue for task in tasks):
        said[QUEUE] = first.queue
    if any(task.name != first.name for task in tasks):
        return operation, said
    return f"{operation} {first.name}", said | {TASK_NAME: first.name}


def of_attempt(claim: Claim, members: int = 1) -> tuple[str, Attributes]:
    """The name and attributes of an attempt's span; `members` run with it, it among them."""
    operation, name = "run", claim.name
    if name == delivery.NAME and claim.payload:
        operation, name = "deliver", str(orjson.loads(claim.payload).get("channel"))
    said: Attributes = {
        SYSTEM: "holdfast",
        OPERATION: operation,
        KIND: "process",
        QUEUE: claim.queue,
        TASK_ID: claim.task_id,
        TASK_NAME: claim.name,
        "holdfast.attempt": claim.attempt,
        "holdfast.priority": claim.priority.value,
        "holdfast.worker_id": claim.worker_id,
    }
    if claim.cause is not Cause.SUBMITTED:
        said["holdfast.cause"] = claim.cause.value
    if members > 1:
        said[NUMBER] = members
    return f"{operation} {name}", said


def of_wait(claim: Claim) -> tuple[str, Attributes]:
    """Those of the time before it was claimed."""
    return f"wait {claim.name}", {QUEUE: claim.queue, TASK_ID: claim.task_id}


def end_of(outcome: Outcome) -> tuple[AttemptEnd, TaskError | None]:
    """How the attempt ended, and the error if that was its own or its worker's fault."""
    match outcome:
        case Succeeded():
            return AttemptEnd.COMPLETED, None
        case Failed(error):
            return AttemptEnd.ERROR, error
        case TimedOut(error):
            return AttemptEnd.TIMEOUT, error
        case WorkerLost(error):
            return AttemptEnd.WORKER_LOST, error
        case Unfit(error):
            return AttemptEnd.RELEASED, error
        case Released() | Deferred():
            return AttemptEnd.RELEASED, None
        case Stopped() | Dropped():
            return AttemptEnd.CANCELLED, None
        case _:
            assert_never(outcome)
