"""Chores: work on the store that takes several steps, and must be finished though its doer dies.

A chore is a record that says what is to do. Whoever begins it writes that down first, or with the
end of the attempt that makes it necessary; whoever has done it forgets it. Until then it comes due,
and any process that keeps the store in order takes it up. So every chore may be done twice.
"""

from __future__ import annotations

import json
from typing import Final

from holdfast.core.attempt import Settlement
from holdfast.core.dropping import BAD_ENDS
from holdfast.core.flow import IN_PAYLOAD, flow_of
from holdfast.core.record import Changes, Put, Record
from holdfast.core.task import Json, Reason

CHORE: Final = "chore"
"""The kind of these records."""

CANCEL_REST: Final = "cancel_rest"
GIVE_UP: Final = "give_up"
"""Cancel a group whose members are not all stored: its submitter died over it."""
FORGET_KEY: Final = "forget_key"
"""Nothing but to be forgotten: the idempotency key of a composition."""


def chore(
    name: str, key: str, about: Json, *, due_in: float = 0.0, version: int | None = None
) -> Put:
    """A chore of this name. Chores of one name and key are one."""
    document = json.dumps({"do": name, "about": about})
    return Put(CHORE, chore_key(name, key), document, version=version, due_in=due_in)


def chore_key(name: str, key: str) -> str:
    return f"{name} {key}"


def read_chore(record: Record) -> tuple[str, Json]:
    """Its name, and what it is about."""
    said = json.loads(record.document)
    return said["do"], said["about"]


def with_chores(settlement: Settlement, payload: bytes) -> Settlement:
    """The same settlement, with what must be done because a task ended so. A child that did not go
    well may take its siblings along.
    """
    if settlement.state not in BAD_ENDS or IN_PAYLOAD not in payload:
        return settlement
    flow = flow_of(payload)
    is_culprit = settlement.reason not in (Reason.DEPENDENCY_FAILED, Reason.NOT_NEEDED)
    if flow is None or flow.rest_of is None or not is_culprit:
        return settlement
    also = settlement.also or Changes(f"{settlement.task_id} {settlement.attempt} bad end")
    put = chore(CANCEL_REST, flow.rest_of, {"parent": flow.rest_of})
    return settlement._replace(also=also._replace(records=(*also.records, put)))


def has_chores(settlement: Settlement) -> bool:
    """Whether something is to be done once it is written."""
    also = settlement.also
    return also is not None and any(change.kind == CHORE for change in also.records)
