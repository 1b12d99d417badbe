"""kill -9 of a random worker each second: nothing is lost, doubled or started without a cause."""

from __future__ import annotations

import pytest
from tests.acceptance.conftest import MakeStage
from tests.acceptance.storm import SETTINGS, kill_storm

from holdfast.core.task import Cause, State

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

SECONDS = 8
TASKS = 2_000
"""`make soak` has ten times as many."""


@pytest.mark.parametrize("store", ["sqlite", "redis", "mongo"], indirect=True)
def test_a_kill_each_second_loses_doubles_and_hides_nothing(make_stage: MakeStage) -> None:
    """PostgreSQL has Redis beside it here, and is alone in the storm over gates."""
    stage = make_stage(**SETTINGS)
    tasks = TASKS // 20 if stage.is_slow else TASKS

    toll = kill_storm(stage, tasks=tasks, seconds=SECONDS, seed=2)

    assert toll.broken == []
    assert len(toll.pictures) == tasks
    assert toll.states == {State.COMPLETED}
    assert toll.kills >= SECONDS // 2
    assert toll.causes.count(Cause.WORKER_LOST) > 0
    assert len(stage.log.starts()) <= len(toll.causes)
