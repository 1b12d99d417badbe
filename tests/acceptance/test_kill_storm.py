"""kill -9 of a random worker each second: nothing is lost, doubled or started without a cause."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.acceptance.conftest import MakeStage, on_every_store, on_every_store_and_redis
from tests.acceptance.stage import ids, until
from tests.acceptance.storm import ARGUMENTS, CRASHES, SETTINGS, Killer, kill_storm

from holdfast.core.task import Cause, State

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

SECONDS = 10
TASKS = 4_000
SECTIONS = 200


@on_every_store_and_redis
def test_a_kill_each_second_loses_doubles_and_hides_nothing(make_stage: MakeStage) -> None:
    stage = make_stage(**SETTINGS)
    tasks = TASKS // 10 if stage.is_slow else TASKS

    toll = kill_storm(stage, tasks=tasks, seconds=SECONDS, seed=2)

    assert toll.broken == []
    assert len(toll.pictures) == tasks
    assert toll.states == {State.COMPLETED}
    assert toll.kills >= SECONDS // 2
    assert toll.causes.count(Cause.WORKER_LOST) > 0
    assert len(stage.log.starts()) <= len(toll.causes)


@on_every_store
def test_locks_stay_exclusive_while_their_holders_are_killed(make_stage: MakeStage) -> None:
    stage = make_stage(**SETTINGS)
    workers = [stage.worker(*ARGUMENTS) for _ in range(2)]
    killer = Killer(stage, workers, seed=3)
    calls = [stage.shop.locked.call(f"d{n % 8}", 0.1) for n in range(SECTIONS)]

    acknowledged = ids(stage.app.submit_many(calls))
    killer.storm(10.0, every=0.8)
    # MongoDB leaves the transaction of a process that died open for a minute, and with it the locks
    # of its documents: several deaths in a row may hold one key up.
    until(lambda: not stage.unfinished(), within=240 if stage.is_slow else 60)

    starts = sorted(stage.log.starts(), key=lambda start: start.began)
    assert stage.broken(acknowledged, crash_limit=CRASHES) == []
    assert len({start.task_id for start in starts}) == SECTIONS
    assert len(killer.killed) >= 5
    for key in {start.lock for start in starts}:
        held = [start for start in starts if start.lock == key]
        for before, after in pairwise(held):
            assert before.ended is None or before.ended <= after.began
            assert before.fence is not None
            assert after.fence is not None
            assert before.fence < after.fence
