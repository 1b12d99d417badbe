"""Claims that are run together: how they are gathered, and how a buffer keeps them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.unit.worker.runs import a_claim

from holdfast.core.attempt import Claim
from holdfast.core.flow import IN_PAYLOAD
from holdfast.core.lifecycle import Failed, Outcome, Released, Stopped, Succeeded
from holdfast.core.task import TaskError, WorkerId
from holdfast.definitions.batch import BatchRule
from holdfast.definitions.registry import Registry
from holdfast.testing import MemoryApp
from holdfast.testing.eventually import eventually
from holdfast.worker.batch import BatchRun
from holdfast.worker.batch_claim import BatchClaim, ids_of, locks_of, members_of
from holdfast.worker.claim_buffer import ClaimBuffer
from holdfast.worker.gathering import Gatherer
from holdfast.worker.processes.wire import pack_claim, pack_ends, unpack_claim, unpack_ends


class Rules:
    """Stands for a registry in which every task named like a number has batches of so many."""

    batched = frozenset({"3", "5"})

    def __getitem__(self, name: str) -> Any:
        class Definition:
            batch = BatchRule(int(name), 0.05)

        return Definition


@pytest.fixture
async def ready() -> list[BatchClaim]:
    return []


@pytest.fixture
async def gatherer(ready: list[BatchClaim]) -> Gatherer:
    def take(batch: BatchClaim, _since: float) -> None:
        ready.append(batch)

    return Gatherer(asyncio.get_running_loop(), cast("Registry", Rules()), take)


def ids(claims: list[Claim]) -> list[list[str]]:
    return [[one.task_id for one in members_of(claim)] for claim in claims]


async def test_full_batches_come_back_and_one_of_each_name_fills(gatherer: Gatherer) -> None:
    threes = [a_claim(n, name="3") for n in range(4)]

    back = gatherer.take([*threes, a_claim(9), a_claim(8, name="5")])

    assert ids(back) == [["task-0", "task-1", "task-2"], ["task-9"]]
    assert isinstance(back[0], BatchClaim)
    assert not isinstance(back[1], BatchClaim)
    assert gatherer.holds() == {"task-3", "task-8"}
    assert len(gatherer) == 2


async def test_a_batch_whose_time_has_come_is_started(
    gatherer: Gatherer, ready: list[BatchClaim]
) -> None:
    gatherer.take([a_claim(1, name="3")])

    await eventually(lambda: ready)

    assert ids(list(ready)) == [["task-1"]]
    assert len(gatherer) == 0


@pytest.mark.parametrize("given", [{"crash_count": 1}, {"charged": 3, "max_retries": 3}])
async def test_what_could_harm_others_or_be_harmed_is_alone(
    gatherer: Gatherer, given: dict[str, int]
) -> None:
    back = gatherer.take([a_claim(1, name="3"), a_claim(2, name="3", **given)])

    assert ids(back) == [["task-2"]]
    assert gatherer.holds() == {"task-1"}


async def test_one_that_has_no_retries_at_all_is_not_alone(gatherer: Gatherer) -> None:
    assert gatherer.take([a_claim(1, name="3", max_retries=0)]) == []


async def test_how_many_one_start_takes_goes_by_what_came_last(gatherer: Gatherer) -> None:
    seen = []
    for n in range(4):
        gatherer.take([a_claim(n, name="5")])
        gatherer.take([])
        seen.append(gatherer.per_run)
    assert seen == [2, 4, 5, 5]
    gatherer.take([a_claim(2, name="5"), a_claim(3)])
    assert gatherer.per_run == 1


async def test_members_are_withdrawn_dropped_and_seized(
    gatherer: Gatherer, ready: list[BatchClaim]
) -> None:
    gone = WorkerId("gone")
    gatherer.take(
        [a_claim(1, name="5"), a_claim(2, name="5", worker_id=gone), a_claim(3, name="5")]
    )

    assert ids(gatherer.withdraw({a_claim(1).task_id})) == [["task-1"]]
    gatherer.drop(gone)
    assert ids(gatherer.seize()) == [["task-3"]]
    gatherer.flush()
    assert ready == []


async def test_a_buffer_keeps_a_batch_as_one_and_hands_it_back_one_by_one() -> None:
    buffer = ClaimBuffer(asyncio.get_running_loop(), lambda: None)
    batch = BatchClaim.gathered([a_claim(n) for n in range(3)])
    buffer.put([a_claim(9), batch])

    assert len(buffer) == 2
    assert buffer.holds() == {"task-0", "task-1", "task-2", "task-9"}
    assert ids(buffer.withdraw({a_claim(1).task_id})) == [["task-1"]]
    assert buffer.holds() == {"task-0", "task-2", "task-9"}
    assert sorted(one.task_id for one in buffer.seize()) == ["task-0", "task-2", "task-9"]


def test_a_batch_says_what_its_members_have() -> None:
    batch = BatchClaim.gathered(
        [
            a_claim(1),
            a_claim(2, lock="a"),
            a_claim(3, lock="b", payload=b"{" + IN_PAYLOAD + b":{}}"),
        ]
    )

    assert (batch.lock, batch.payload) == ("a", IN_PAYLOAD)
    assert (ids_of(batch), locks_of(batch)) == ({"task-1", "task-2", "task-3"}, {"a", "b"})


@pytest.mark.parametrize("number", [1, 3])
def test_a_batch_goes_over_the_wire(number: int) -> None:
    batch = BatchClaim.gathered([a_claim(n, payload=b"%d" % n * n) for n in range(number)])

    arrived = unpack_claim(pack_claim(batch, None))

    assert isinstance(arrived, BatchClaim)
    assert list(arrived.members) == list(batch.members)
    ends: list[Outcome] = [Succeeded(b"1"), Failed(TaskError(type="E", message="m")), Released(2.0)]
    assert unpack_ends(pack_ends(ends, None)) == ends


def test_members_end_as_the_whole_run_says_unless_they_have_ended_otherwise() -> None:
    app = MemoryApp()

    @app.task(name="noop")
    def work(items: int) -> None: ...

    claims = [a_claim(1), a_claim(2)]
    run = BatchRun(BatchClaim.gathered(claims), work, lambda report: None)
    run.cancel({claims[1].task_id})
    assert run.members[1].stopping.look()

    assert run.ends(Released()) == [(claims[0], Released()), (claims[1], Stopped())]
    assert run.stop_reason is None
