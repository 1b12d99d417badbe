"""kill -9 of random workers under a mixed load; the tests and `make soak` share it."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.stage import Stage, WorkerProcess, ids, send, until
from tests.kit.checker import Picture
from tests.kit.servers.mongo import end_transactions

from holdfast import Call
from holdfast.core.task import Cause, State

ARGUMENTS = ("--processes", "2", "-c", "4")
CRASHES = 1_000  # a victim of the storm is no poison pill
SETTINGS = {"lease": "2s", "heartbeat": "0.5s", "sweep": "0.5s", "poll": "0.5s"} | {
    "crash_limit": str(CRASHES)
}
BATCH = 100


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
        self._kill()
        if self.stage.is_slow:
            until(lambda: not Path(f"/proc/{self.killed[-1]}").exists())
            end_transactions(self.stage.environment["HOLDFAST_URL"].partition("?")[0])

    def _kill(self) -> None:
        if len(self.killed) % 5 == 4:
            victim = self.random.choice(self.workers)
            self.killed.append(victim.pid)
            victim.end()
            self.workers.remove(victim)
            self.workers.append(self.stage.worker(*ARGUMENTS, ready=False))
        elif processes := [pid for worker in self.workers for pid in worker.children()]:
            self.killed.append(self.random.choice(processes))
            send(self.killed[-1], signal.SIGKILL)


def mixed_calls(stage: Stage, number: int) -> Iterator[Call[Any]]:
    """Where there are few tasks they last longer: a kill is to meet some."""
    shop, rng = stage.shop, random.Random(number)
    length = 10 if stage.is_slow else 1
    for n in range(number):
        seconds = length * rng.choice((0.0, 0.01, 0.05, 0.1))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Toll:
    """What a storm left behind."""

    broken: list[str]
    kills: int
    pictures: list[Picture]

    @property
    def states(self) -> set[State]:
        return {picture.task.state for picture in self.pictures}

    @property
    def causes(self) -> list[Cause]:
        return [a.cause for picture in self.pictures for a in picture.history.attempts]


def kill_storm(stage: Stage, *, tasks: int, seconds: float, seed: int) -> Toll:
    """Half of the tasks wait when the storm begins, the others come while it lasts."""
    workers = [stage.worker(*ARGUMENTS, ready=False) for _ in range(2)]
    killer = Killer(stage, workers, seed)
    calls = list(mixed_calls(stage, tasks))
    acknowledged = ids(stage.app.submit_many(calls[: tasks // 2]))
    until(lambda: stage.finished() > 0)
    killing = threading.Thread(target=killer.storm, args=(seconds, 1.0))
    killing.start()
    batch = min(BATCH, max(1, tasks // 20))
    for start in range(tasks // 2, tasks, batch):
        acknowledged += ids(stage.app.submit_many(calls[start : start + batch]))
        time.sleep(seconds / (tasks / 2 / batch) * 0.6)  # spread over the storm
    killing.join()
    until(lambda: not stage.unfinished(), within=400 if stage.is_slow else 120 + tasks / 50)
    pictures = stage.pictures()
    found = stage.broken(acknowledged, pictures=pictures, crash_limit=CRASHES)
    broken = [str(each) for each in found]
    if len(acknowledged) != len(pictures):
        broken.append(f"{len(acknowledged)} acknowledged, {len(pictures)} in the store")
    return Toll(broken=broken, kills=len(killer.killed), pictures=pictures)
