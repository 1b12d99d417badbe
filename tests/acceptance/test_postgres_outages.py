"""The server crashes, stays away, throws everybody out: workers wait, and go on where they were.

In every case: nothing lost, nothing recorded or run twice, no worker process ends, the first task
starts within two seconds of the server's return, and the log stays readable.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.acceptance import ordeals
from tests.acceptance.conftest import MakeStage, on_own_postgres
from tests.acceptance.load import SETTINGS, Trial
from tests.kit.servers.postgres import PostgresServer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180), on_own_postgres]


@pytest.fixture
def trial(make_stage: MakeStage) -> Iterator[Trial]:
    with Trial(make_stage(**SETTINGS)) as trial:
        yield trial


def test_three_crashes_under_load_lose_and_double_nothing(
    trial: Trial, own_postgres: PostgresServer
) -> None:
    ordeals.crash(trial, own_postgres, times=3)


def test_a_server_that_is_away_is_waited_for_quietly(
    trial: Trial, own_postgres: PostgresServer
) -> None:
    ordeals.stay_away(trial, own_postgres, seconds=5.0)


def test_kill_9_of_the_whole_server_is_one_more_outage(
    trial: Trial, own_postgres: PostgresServer
) -> None:
    ordeals.die(trial, own_postgres)


def test_backends_thrown_out_again_and_again_come_back_at_once(
    trial: Trial, own_postgres: PostgresServer
) -> None:
    ordeals.throw_out(trial, own_postgres)


def test_who_is_told_to_leave_while_it_is_away_leaves(
    make_stage: MakeStage, own_postgres: PostgresServer
) -> None:
    ordeals.leave_without(make_stage(**SETTINGS), own_postgres)
