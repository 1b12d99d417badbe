"""The server crashes, stays away, throws everybody out: workers wait, and go on where they were.

In every case: nothing lost, nothing recorded or run twice, no worker process ends, the first task
starts within two seconds of the server's return, and the log stays readable. `make soak` has more
of each.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.acceptance import ordeals
from tests.acceptance.conftest import MakeStage, on_own_postgres
from tests.acceptance.load import SETTINGS, Trial
from tests.kit.servers.postgres import PostgresServer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240), on_own_postgres]


@pytest.fixture
def trial(make_stage: MakeStage) -> Iterator[Trial]:
    with Trial(make_stage(**SETTINGS)) as trial:
        yield trial


def test_a_server_that_crashes_is_killed_and_throws_everybody_out_loses_and_doubles_nothing(
    trial: Trial, own_postgres: PostgresServer
) -> None:
    ordeals.crash(trial, own_postgres, times=1)
    ordeals.die(trial, own_postgres)
    ordeals.throw_out(trial, own_postgres, times=3)

    trial.end()


def test_a_server_that_is_away_is_waited_for_quietly_and_who_is_told_to_leave_then_leaves(
    trial: Trial, own_postgres: PostgresServer
) -> None:
    ordeals.stay_away(trial, own_postgres, seconds=4.0)

    ordeals.leave_without(trial, own_postgres)
