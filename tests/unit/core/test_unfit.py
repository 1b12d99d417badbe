"""How long tasks are offered that no worker's code is fit for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.fleet import WorkerInfo, WorkerStatus, knows
from holdfast.core.task import AttemptEnd, Cause, WorkerId
from holdfast.core.unfit import UNFIT, is_known, offered_again_in, unknown_names, unknown_since
from holdfast.testing.factories import task_error, worker_info

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = 3600.0


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def attempt(number: int, seconds_ago: float, kind: str | None = UNFIT) -> Attempt:
    return Attempt(
        number=number,
        cause=Cause.RELEASED,
        worker_id=WorkerId("w"),
        started_at=ago(seconds_ago),
        ended=None if kind is None else AttemptEnd.RELEASED,
        error=None if kind is None else task_error(type=kind),
    )


def history(*attempts: Attempt, requeued: float | None = None) -> History:
    events = () if requeued is None else (Event(at=ago(requeued), kind="requeued"),)
    return History(attempts=(*attempts, attempt(len(attempts) + 1, 0.0, None)), events=events)


@pytest.mark.parametrize(
    ("refused", "seconds"), [(0, 1), (9, 1), (10, 2), (11, 4), (14, 32), (15, 60), (500, 60)]
)
def test_it_is_offered_soon_ten_times_and_then_less_and_less_often(
    refused: int, seconds: int
) -> None:
    told = history(*(attempt(n + 1, 100.0) for n in range(refused)))

    assert offered_again_in(told, HOUR) == seconds


def test_other_ends_do_not_count() -> None:
    told = history(attempt(1, 9000.0, "ValueError"), attempt(2, 8000.0, "UnknownTask"))

    assert offered_again_in(told, HOUR) == 1


def test_it_is_given_up_after_the_grace() -> None:
    told = history(attempt(1, 3600.0), attempt(2, 60.0))

    assert offered_again_in(told, HOUR) is None
    assert offered_again_in(told, HOUR + 1) == 1


def test_a_replay_begins_anew() -> None:
    told = history(attempt(1, 9000.0), attempt(2, 8000.0), attempt(3, 50.0), requeued=60.0)

    assert offered_again_in(told, 45.0) is None
    assert offered_again_in(told, HOUR) == 1


def worker(name: str | None, beat: float, status: WorkerStatus = WorkerStatus.ACTIVE) -> WorkerInfo:
    able = frozenset() if name is None else frozenset({knows(name)})
    return worker_info(capabilities=able, beat_at=ago(beat), status=status)


def test_what_a_worker_that_is_alive_knows_is_not_unknown() -> None:
    fleet = [worker("pay", 0), worker(None, 0)]

    assert is_known("pay", fleet)
    assert unknown_since("pay", fleet, HOUR) is None


def test_what_nobody_ever_knew_is_unknown_by_the_latest_heartbeat() -> None:
    fleet = [worker("other", 5), worker(None, 20)]

    assert unknown_since("pay", fleet, HOUR) == ago(HOUR + 5)


@pytest.mark.parametrize(("beat", "is_unknown"), [(HOUR - 10, False), (HOUR + 10, True)])
@pytest.mark.parametrize("status", [WorkerStatus.STOPPED, WorkerStatus.DEAD])
def test_a_worker_that_left_lately_may_come_back(
    beat: float, is_unknown: bool, status: WorkerStatus
) -> None:
    fleet = [worker("pay", beat, status), worker(None, 0)]

    assert (unknown_since("pay", fleet, HOUR) is not None) is is_unknown


def test_where_nobody_is_alive_nothing_is_given_up() -> None:
    assert unknown_since("pay", [worker(None, 0, WorkerStatus.STOPPED)], HOUR) is None


def test_names_are_summed_up_over_all_that_require_them() -> None:
    demand = {
        frozenset({knows("pay")}): 2,
        frozenset({knows("pay"), "gpu"}): 3,
        frozenset({"gpu"}): 5,
    }

    assert unknown_names(demand) == {"pay": 5}
