"""MongoDB is killed, stays away or falls silent: workers wait, and go on where they were.

In every case: nothing lost, nothing recorded or run twice, no worker process ends, a task starts
soon after the server's return, and the log stays readable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.acceptance import ordeals
from tests.acceptance.conftest import MakeStage, on_own_mongo
from tests.acceptance.load import SETTINGS, Trial, assert_calm, said_since
from tests.kit.servers.mongo import MongoServer

PAUSE = 0.5
"""Between two submits, in seconds: the test server takes some dozens of tasks a second."""
SOON = 5.0

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240), on_own_mongo]


@pytest.fixture
def trial(make_stage: MakeStage) -> Iterator[Trial]:
    with Trial(make_stage(**SETTINGS), pause=PAUSE) as trial:
        yield trial


def test_kill_9_of_the_server_and_its_silence_lose_and_double_nothing(
    trial: Trial, own_mongo: MongoServer
) -> None:
    for _ in range(2):
        own_mongo.restart()
        trial.came_back(20, soon=SOON)
    own_mongo.pause()
    time.sleep(4.0)  # this is the length of the silence, not a wait for anything
    own_mongo.go_on()
    trial.progress(20)

    trial.end()


def test_a_server_that_is_away_is_waited_for_quietly_and_who_is_told_to_leave_then_leaves(
    trial: Trial, own_mongo: MongoServer
) -> None:
    away = 12.0  # longer than the driver looks for a server before it says so
    before = [worker.said() for worker in trial.workers]

    own_mongo.restart(away=away)

    said = [said_since(*each) for each in zip(trial.workers, before, strict=True)]
    trial.came_back(20, soon=SOON)
    for each in said:
        assert_calm(each, seconds=away)
        assert "store.lost" in each
    ordeals.leave_without(trial, own_mongo)
