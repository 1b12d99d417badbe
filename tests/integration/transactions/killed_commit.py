"""A process that writes several things together, and dies where `HOLDFAST_TEST_KILL_AT` says.

Run with a URL, what to do, and the ids of what is written. The test that started it does the same
once more.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from holdfast.core.attempt import Claim
from holdfast.core.gate import Count
from holdfast.core.record import Changes, Put
from holdfast.core.task import TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.stores.kill_points import reached
from holdfast.testing.factories import new_task, success
from holdfast.wiring import open_store

KIND = "note"
QUEUE = "later"
WINDOW = 3600.0
WORKER = WorkerId("victim")


def changes_of(ids: Sequence[str]) -> Changes:
    """Two tasks, two records that must be new, and a latch that is counted up; the first id is that
    of the commit.
    """
    commit, *tasks = ids
    new = [new_task(id=TaskId(each), queue=QUEUE, idempotency_key=each) for each in tasks]
    records = [Put(KIND, f"{commit}/{n}", "{}", version=0) for n in (1, 2)]
    return Changes(commit, new, records, WINDOW, [Count(latch_of(commit), 2)])


def latch_of(commit: str) -> str:
    return f"latch:of {commit}"


async def commit(store: Store, ids: Sequence[str]) -> None:
    answers = await store.commit(changes_of(ids))
    assert [answer.task_id for answer in answers] == [*ids[1:]]


async def settle(store: Store, ids: Sequence[str]) -> None:
    """Complete the task that has the id of the commit."""
    task = await store.get(TaskId(ids[0]))
    assert task is not None
    claim = Claim.of(task)._replace(attempt=1, worker_id=WORKER)
    assert not await store.save([success(claim)._replace(also=changes_of(ids))])


WAYS = {"commit": commit, "settle": settle}


async def main(url: str, way: str, *ids: str) -> None:
    async with open_store(url) as store:
        await WAYS[way](store, ids)
        reached("answered")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
