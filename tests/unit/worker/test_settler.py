"""Group commit: what is saved together, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from tests.unit.worker.runs import a_claim

from holdfast.core.attempt import Refusal, Settlement
from holdfast.core.lifecycle import Succeeded, settle
from holdfast.worker import settler as module
from holdfast.worker.reporter import Reporter
from holdfast.worker.settler import Settler


class Tray:
    """A store that only saves, each time when told to."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.let = asyncio.Semaphore(0)

    async def save(self, settlements: Sequence[Settlement]) -> Sequence[Refusal]:
        self.batches.append(len(settlements))
        await self.let.acquire()
        return []

    async def report(self, reports: Any) -> Sequence[Refusal]:
        return []


async def ignore(refusals: Sequence[Refusal]) -> None:
    return None


def a_settlement(number: int, result: bytes = b"null") -> Settlement:
    return settle(a_claim(number), Succeeded(result), backoff=lambda n: 0.0, crash_limit=3)


def a_settler(tray: Tray) -> Settler:
    reporter = Reporter(cast("Any", tray), asyncio.get_running_loop(), ignore)
    return Settler(
        cast("Any", tray),
        reporter,
        on_saved=lambda saved: None,
        on_clashed=lambda clashed: None,
        on_refused=ignore,
    )


async def settle_down() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_lone_result_is_saved_at_once_and_the_rest_gathers_meanwhile() -> None:
    tray = Tray()
    settler = a_settler(tray)
    running = asyncio.create_task(settler.run())
    await settle_down()

    settler.put(a_settlement(0))
    await settle_down()
    assert tray.batches == [1]

    for number in range(1, 300):
        settler.put(a_settlement(number))
        await asyncio.sleep(0)
    assert tray.batches == [1]
    assert settler.unsaved == 300

    tray.let.release()
    await settle_down()
    assert tray.batches == [1, 299]

    tray.let.release()
    settler.close()
    await asyncio.wait_for(running, 2)
    assert settler.unsaved == 0


async def test_a_closing_settler_saves_everything_first() -> None:
    tray = Tray()
    settler = a_settler(tray)
    for number in range(4500):
        settler.put(a_settlement(number))
    settler.close()

    for _ in range(3):
        tray.let.release()
    await asyncio.wait_for(settler.run(), 2)

    assert tray.batches == [2000, 2000, 500]


async def test_it_is_full_by_count_or_by_bytes() -> None:
    by_count, by_bytes = a_settler(Tray()), a_settler(Tray())
    for number in range(module.MOST_WAITING):
        assert not by_count.is_full
        by_count.put(a_settlement(number))
    large = b"x" * (1024 * 1024)
    for number in range(module.MOST_WAITING_BYTES // len(large)):
        assert not by_bytes.is_full
        by_bytes.put(a_settlement(number, large))

    assert by_count.is_full
    assert by_bytes.is_full


async def test_a_settler_that_was_cancelled_keeps_what_it_was_saving() -> None:
    tray = Tray()
    settler = a_settler(tray)
    running = asyncio.create_task(settler.run())
    settler.put(a_settlement(1))
    await settle_down()

    running.cancel()
    await asyncio.wait({running})

    assert settler.unsaved == 1
    tray.let.release()
    settler.close()
    await asyncio.wait_for(settler.run(), 2)
    assert tray.batches == [1, 1]
