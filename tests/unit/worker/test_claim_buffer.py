"""Where claims wait for a slot, and slots for a claim."""

from __future__ import annotations

import asyncio

from tests.unit.worker.runs import a_claim

from holdfast.core.attempt import Claim
from holdfast.core.task import TaskId, WorkerId
from holdfast.worker.claim_buffer import ClaimBuffer


def a_buffer() -> tuple[ClaimBuffer, list[None]]:
    rooms: list[None] = []
    return ClaimBuffer(asyncio.get_running_loop(), lambda: rooms.append(None)), rooms


async def settle_down() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_claims_leave_in_the_order_they_came() -> None:
    buffer, _ = a_buffer()
    buffer.put([a_claim(1), a_claim(2)])
    buffer.put([a_claim(3)])

    taken = [buffer.take(), buffer.take(), buffer.take(), buffer.take()]

    assert [claim and claim.task_id for claim in taken] == ["task-1", "task-2", "task-3", None]


async def test_one_slot_is_woken_for_many_claims_as_long_as_none_suspends() -> None:
    buffer, _ = a_buffer()
    woken: list[Claim | None] = []

    async def slot() -> None:
        buffer.enter()
        woken.append(await buffer.wait())

    slots = [asyncio.create_task(slot()) for _ in range(3)]
    await settle_down()
    assert buffer.idle == 3

    buffer.put([a_claim(n) for n in range(10)])
    await settle_down()
    assert len(woken) == 1

    buffer.leave()
    await settle_down()
    assert len(woken) == 2

    buffer.close()
    await asyncio.gather(*slots)
    assert woken[2] is None


async def test_room_is_asked_for_when_few_claims_are_left() -> None:
    buffer, rooms = a_buffer()
    buffer.low = 2
    buffer.put([a_claim(n) for n in range(5)])

    asked = []
    for _ in range(5):
        buffer.take()
        asked.append(len(rooms))

    assert asked == [0, 0, 1, 2, 3]


async def test_what_is_handed_back_is_the_least_urgent() -> None:
    buffer, _ = a_buffer()
    buffer.put([a_claim(n) for n in range(4)])

    back = buffer.last(3)

    assert [claim.task_id for claim in back] == ["task-3", "task-2", "task-1"]
    assert len(buffer) == 1


async def test_cancelled_claims_and_those_of_a_lost_lease_never_start() -> None:
    buffer, _ = a_buffer()
    buffer.put([a_claim(1), a_claim(2), a_claim(3, worker_id=WorkerId("worker-0"))])

    withdrawn = buffer.withdraw({TaskId("task-2"), TaskId("task-9")})
    dropped = buffer.drop(WorkerId("worker-0"))

    assert [claim.task_id for claim in withdrawn] == ["task-2"]
    assert dropped == 1
    assert [claim.task_id for claim in buffer.last(9)] == ["task-1"]


async def test_a_slot_that_was_cancelled_is_nobody_to_wake() -> None:
    buffer, _ = a_buffer()
    slots = [asyncio.create_task(buffer.wait()) for _ in range(2)]
    await settle_down()

    slots[0].cancel()
    await settle_down()
    assert buffer.idle == 1
    buffer.close()

    assert await slots[1] is None
