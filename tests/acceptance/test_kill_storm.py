"""kill -9 of a random worker each second: nothing is lost, doubled or started without a cause."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from tests.acceptance.conftest import MakeStage
from tests.acceptance.stage import Stage, WorkerProcess, ids, send, until

from holdfast import Call
from holdfast.core.task import Cause, State

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]

SECONDS = 15
TASKS = 5_000
SECTIONS = 200


class Killer:
    """Kills a random worker process every so often; every fifth time a whole supervisor."""

    def __init__(self, stage: Stage, workers: list[WorkerProcess], seed: int) -> None:
        self.stage, self.workers = stage, workers
        self.killed: list[int] = []
        self.random = random.Random(seed)

    def storm(self, seconds: float, every: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.strike()
            time.sleep(every)  # this is the beat of the storm, not a wait for anything

    def strike(self) -> None:
        if len(self.killed) % 5 == 4:
            victim = self.random.choice(self.workers)
            self.killed.append(victim.pid)
            victim.end()
            self.workers.remove(victim)
            self.workers.append(self.stage.worker(*ARGUMENTS, ready=False))
        elif processes := [pid for worker in self.workers for pid in worker.children()]:
            self.killed.append(self.random.choice(processes))
            send(self.killed[-1], signal.SIGKILL)


ARGUMENTS = ("--processes", "2", "-c", "4")


def mixed_calls(stage: Stage, number: int) -> Iterator[Call[Any]]:
    shop, rng = stage.shop, random.Random(number)
    for n in range(number):
        seconds = rng.choice((0.0, 0.01, 0.05, 0.1))
        match n % 10:
            case 0:
                yield shop.locked.call(f"d{n % 70}", seconds / 5)
            case 1:
                yield shop.work.call(seconds, fail_first=True)
            case 2 | 3:
                yield shop.noop.call(n)
            case 4 | 5 | 6:
                yield shop.work.call(seconds)
            case _:
                yield shop.nap.call(seconds)


def test_a_kill_each_second_loses_doubles_and_hides_nothing(make_stage: MakeStage) -> None:
    stage = make_stage(lease="2s", heartbeat="0.5s", sweep="0.5s", poll="0.5s", crash_limit="50")
    workers = [stage.worker(*ARGUMENTS, ready=False) for _ in range(2)]
    killer = Killer(stage, workers, seed=2)
    calls = list(mixed_calls(stage, TASKS))

    acknowledged = ids(stage.app.submit_many(calls[: TASKS // 2]))
    until(lambda: stage.finished() > 0)
    storm = threading.Thread(target=killer.storm, args=(SECONDS, 1.0))
    storm.start()
    for start in range(TASKS // 2, TASKS, 100):
        acknowledged += ids(stage.app.submit_many(calls[start : start + 100]))
        time.sleep(0.2)  # spread over the storm
    storm.join()
    until(lambda: not stage.unfinished(), within=90)

    pictures = stage.pictures()
    assert stage.broken(acknowledged, crash_limit=50) == []
    assert len(acknowledged) == len(pictures) == TASKS
    assert {picture.task.state for picture in pictures} == {State.COMPLETED}
    assert len(killer.killed) >= SECONDS - 3
    causes = [attempt.cause for picture in pictures for attempt in picture.history.attempts]
    assert causes.count(Cause.WORKER_LOST) > 0
    assert len(stage.log.starts()) <= len(causes)


def test_locks_stay_exclusive_while_their_holders_are_killed(make_stage: MakeStage) -> None:
    stage = make_stage(lease="2s", heartbeat="0.5s", sweep="0.5s", poll="0.5s", crash_limit="50")
    workers = [stage.worker(*ARGUMENTS) for _ in range(2)]
    killer = Killer(stage, workers, seed=3)
    calls = [stage.shop.locked.call(f"d{n % 8}", 0.1) for n in range(SECTIONS)]

    acknowledged = ids(stage.app.submit_many(calls))
    killer.storm(10.0, every=0.8)
    until(lambda: not stage.unfinished(), within=60)

    starts = sorted(stage.log.starts(), key=lambda start: start.began)
    assert stage.broken(acknowledged, crash_limit=50) == []
    assert len({start.task_id for start in starts}) == SECTIONS
    assert len(killer.killed) >= 10
    for key in {start.lock for start in starts}:
        held = [start for start in starts if start.lock == key]
        for before, after in pairwise(held):
            assert before.ended is None or before.ended <= after.began
            assert before.fence is not None
            assert after.fence is not None
            assert before.fence < after.fence
