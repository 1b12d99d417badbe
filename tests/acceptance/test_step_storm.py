"""kill -9 of random workers: what a step has recorded is never done again, and no event is missed.

Some dozen kills; `HOLDFAST_TEST_STEP_STORM=200` for that many.
"""

from __future__ import annotations

import os
import time
from collections import Counter

import pytest
from tests.acceptance.conftest import MakeStage, on_every_store
from tests.acceptance.stage import Stage, ids, until
from tests.acceptance.storm import ARGUMENTS, CRASHES, SETTINGS, Killer

from holdfast.core.task import Cause, State

KILLS = int(os.environ.get("HOLDFAST_TEST_STEP_STORM", "12"))
TASKS = 60

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180 + 5 * KILLS), on_every_store]


def test_a_recorded_step_is_never_done_again(make_stage: MakeStage) -> None:
    stage = make_stage(**SETTINGS)
    tasks = TASKS // 5 if stage.is_slow else TASKS
    workers = [stage.worker(*ARGUMENTS) for _ in range(2)]
    killer = Killer(stage, workers, seed=11)
    sagas: list[str] = []

    while len(killer.killed) < KILLS:
        sagas += begin(stage, tasks)
        killer.storm(1.5, every=0.4)
        for task_id in sagas[-tasks:]:
            assert stage.app.emit("go", task_id).first
    until(lambda: not stage.unfinished(), within=240 if stage.is_slow else 120)

    pictures = stage.pictures()
    assert [str(each) for each in stage.broken(sagas, crash_limit=CRASHES)] == []
    assert {picture.task.state for picture in pictures} == {State.COMPLETED}
    assert len(pictures) == len(sagas)
    kept: set[str] = set()
    done: Counter[str] = Counter()
    for line in stage.log.path.with_name("effects").read_text().splitlines():
        what, _, step = line.partition(" ")
        if what == "did":
            assert step not in kept, f"{step} was recorded, and is done again"
            done[step] += 1
        else:
            kept.add(step)
    assert kept == done.keys()
    assert len(kept) == stage.shop.STEPS * len(sagas)
    causes = [a.cause for picture in pictures for a in picture.history.attempts]
    assert causes.count(Cause.WORKER_LOST) > 0, "the storm hit nobody"
    assert not any(a.charged for picture in pictures for a in picture.history.attempts)


def begin(stage: Stage, number: int) -> list[str]:
    """Workflows on the loop, in threads, and a few in processes of their own."""
    shop = stage.shop
    kinds = [shop.saga, shop.saga, shop.saga_thread, shop.saga_thread, shop.saga_process]
    calls = [kinds[n % len(kinds)].call() for n in range(number)]
    started: list[str] = ids(stage.app.submit_many(calls))
    time.sleep(0.2)  # so that a storm finds some of them under way; nothing is awaited here
    return started
