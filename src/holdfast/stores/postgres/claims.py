"""Hands tasks to workers: what `holdfast.claim` brings, as claims."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from holdfast.core.attempt import Claim, Claimed
from holdfast.core.task import Cause, WorkerId
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.lanes import Lanes
from holdfast.stores.postgres.queries import Queries

_CAUSES: Final = {cause.value: cause for cause in Cause}
_BY_RANK_AND_ID: Final = itemgetter(1, 0)
_LANE: Final = itemgetter(2)


class Ask(NamedTuple):
    """Who asks for work, and for which."""

    worker_id: WorkerId
    queues: Sequence[str] | None
    capabilities: Sequence[str]
    limit: int


async def claim(db: Connection, sql: Queries, lanes: Lanes, ask: Ask, now: int | None) -> Claimed:
    header, *rows = await db.fetch(
        sql["claim"], ask.worker_id, ask.queues, ask.capabilities, ask.limit, now
    )
    next_due: int | None = header[1]
    seconds = None if next_due is None else next_due / 1e6
    if not rows:
        return Claimed([], seconds)
    known = await lanes.know(db, set(map(_LANE, rows)))
    return Claimed(_claims(rows, ask.worker_id, known), seconds)


def _claims(rows: list[Any], worker_id: WorkerId, lanes: dict[int, Any]) -> list[Claim]:
    """Claims by the thousand: built as plain tuples, which takes half the time."""
    rows.sort(key=_BY_RANK_AND_ID)
    kinds = {number: (lane.queue, lane.priority) for number, lane in lanes.items()}
    causes = _CAUSES
    return [
        tuple.__new__(Claim, (
            task_id, attempt, worker_id, name, *kinds[lane], payload, charged, max_retries,
            crash_count, timeout, retry, lock, fence, causes[cause], trace, owner, False,
        ))
        for task_id, _, lane, attempt, name, payload, max_retries, timeout, retry, lock, fence,
        trace, owner, charged, crash_count, cause in rows
    ]  # fmt: skip
