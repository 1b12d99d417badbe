"""Several claims that are run together: one thing for the buffer and a slot, each its own for the
store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from holdfast.core.attempt import Claim
from holdfast.core.flow import IN_PAYLOAD
from holdfast.core.task import TaskId


class BatchClaim(Claim):
    """The claims of one batch. It has the fields of the first, but for its lock, which is that of
    the first that has one, and its payload, which only says whether one may have to do with others.
    """

    members: Sequence[Claim]

    @classmethod
    def gathered(cls, members: Sequence[Claim]) -> Self:
        """Put them together. There is at least one."""
        first = members[0]
        lock = next((one.lock for one in members if one.lock is not None), None)
        has_flow = any(one.attempt > 1 or IN_PAYLOAD in one.payload for one in members)
        made = cls._make(first._replace(lock=lock, payload=IN_PAYLOAD if has_flow else b""))
        made.members = tuple(members)
        return made


def members_of(claim: Claim) -> Sequence[Claim]:
    """The claims of a batch, or the one that it is."""
    return claim.members if isinstance(claim, BatchClaim) else (claim,)


def ids_of(claim: Claim) -> set[TaskId]:
    return {one.task_id for one in members_of(claim)}


def locks_of(claim: Claim) -> set[str]:
    return {one.lock for one in members_of(claim) if one.lock is not None}


def apart(claims: Iterable[Claim]) -> list[Claim]:
    """The claims, those of batches one by one."""
    return [one for claim in claims for one in members_of(claim)]
