"""One heap, one timer, every timeout."""

from __future__ import annotations

import asyncio
import threading
import time

from tests.unit.worker.runs import a_run

from holdfast.testing.eventually import eventually
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.run import Run, StopReason


def in_seconds(seconds: float) -> Run:
    return a_run(time.monotonic() + seconds)


async def test_runs_are_stopped_in_the_order_of_their_deadlines() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    stopped: list[int] = []
    now = time.monotonic()
    for number, seconds in enumerate([0.03, 0.01, 0.02]):
        run = a_run(now + seconds)
        run.on_stop = lambda _reason, number=number: stopped.append(number)
        deadlines.watch(run)

    await eventually(lambda: len(stopped) == 3)

    assert stopped == [1, 2, 0]


async def test_a_run_that_ended_is_not_stopped() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    ended, other = in_seconds(0.01), in_seconds(0.03)
    deadlines.watch(ended)
    deadlines.watch(other)
    deadlines.forget(ended)

    await eventually(lambda: other.stop_reason is StopReason.TIMED_OUT)

    assert ended.stop_reason is None


async def test_a_deadline_that_moved_away_is_looked_at_again() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    run, other = in_seconds(0.01), in_seconds(0.03)
    deadlines.watch(run)
    deadlines.watch(other)
    run.extend(0.1)

    await eventually(lambda: other.stop_reason is StopReason.TIMED_OUT)
    assert run.stop_reason is None

    await eventually(lambda: run.stop_reason is StopReason.TIMED_OUT)


async def test_a_deadline_that_came_closer_is_kept_from_any_thread() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    run = in_seconds(3600)
    deadlines.watch(run)

    threading.Thread(target=run.extend, args=(0.01,)).start()

    await eventually(lambda: run.stop_reason is StopReason.TIMED_OUT, within=2)


async def test_a_run_without_a_timeout_is_never_stopped() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    run, other = a_run(None), in_seconds(0.01)
    deadlines.watch(run)
    deadlines.watch(other)

    await eventually(lambda: other.stop_reason)

    assert run.stop_reason is None


async def test_runs_that_ended_long_before_their_deadline_do_not_pile_up() -> None:
    deadlines = Deadlines(asyncio.get_running_loop())
    for _ in range(10_000):
        run = in_seconds(600)
        deadlines.watch(run)
        deadlines.forget(run)

    assert len(deadlines._heap) < 100
    deadlines.close()
