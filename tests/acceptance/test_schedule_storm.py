"""kill -9 of those who fire schedules: each run is fired once, none is lost."""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta

import pytest
from tests.acceptance.conftest import MakeStage, on_every_store
from tests.acceptance.stage import Stage, until
from tests.acceptance.storm import ARGUMENTS, SETTINGS, Killer

from holdfast.core.flow import flow_of
from holdfast.core.task import State
from holdfast.schedules.occurrence import Origin, RunStatus
from holdfast.schedules.series import Series

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

WHOLE = "HOLDFAST_TEST_SCHEDULE_STORM" in os.environ
"""The long dose: a minute of three schedulers, one of which is killed every five seconds."""
SCHEDULES, SECONDS, EVERY = (40, 60.0, 5.0) if WHOLE else (12, 8.0, 1.0)


@on_every_store
def test_every_run_is_fired_once_whoever_dies(make_stage: MakeStage) -> None:
    stage = make_stage(**SETTINGS, retention="1d")
    number = SCHEDULES // 4 if stage.is_slow else SCHEDULES
    made = [_made(stage, n) for n in range(number)]
    workers = stage.fleet(3, *ARGUMENTS)
    killer = Killer(stage, workers, seed=3)

    killer.storm(SECONDS, every=EVERY)
    until(lambda: all(_now(stage, series).runs >= 3 for series in made), within=60)
    paused = [stage.app.schedules.pause(series.id) for series in made]
    until(lambda: not stage.unfinished(), within=120)

    assert len(killer.killed) >= 2
    for before, after in zip(made, paused, strict=True):
        assert after.last_at is not None
        assert before.next_at is not None
        wanted = before.rule.between(before.next_at, after.last_at + timedelta(seconds=1))
        fired = _fired(stage, before)
        assert fired == Counter(at.isoformat() for at in wanted)
        told = stage.app.schedules.runs(before.id, limit=1000).runs
        assert Counter(one.at.isoformat() for one in told) == fired
        assert {one.status for one in told} == {RunStatus.FIRED}
        assert {one.origin for one in told} <= {Origin.SCHEDULE, Origin.CATCH_UP}
    assert stage.app.wait_for(stage.app.client.doctor()) == []


def _made(stage: Stage, number: int) -> Series:
    """Every second, and every run counts."""
    return stage.app.schedules.create(
        stage.shop.noop.call(number), "every 1s", name=f"s{number}", overlap="allow",
        catch_up="all", catch_up_most=1000, catch_up_window="1h",
    )  # fmt: skip


def _now(stage: Stage, series: Series) -> Series:
    found = stage.app.schedules.get(series.id)
    assert found is not None
    return found


def _fired(stage: Stage, series: Series) -> Counter[str]:
    """How often each instant was, by the tasks that there are."""
    fired: Counter[str] = Counter()
    for picture in stage.pictures():
        flow = flow_of(picture.task.payload)
        assert flow is not None
        assert flow.run is not None
        if flow.run.schedule == series.id:
            assert picture.task.state is State.COMPLETED
            fired[flow.run.at] += 1
    return fired
