"""Which lines about attempts a announcer lets through, and what it counts instead."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

import pytest
from tests.unit.worker.runs import a_claim

from holdfast.announcing import MOST_SHOWN, Announcer
from holdfast.core.attempt import Claim, Settlement
from holdfast.core.lifecycle import Failed
from holdfast.core.task import State
from holdfast.logs import EventLog, LogMessage
from holdfast.testing.factories import failure, loss, release, settled, task_error

Shown = Callable[[], Counter[str]]


@pytest.fixture
def shown(caplog: pytest.LogCaptureFixture) -> Shown:
    caplog.set_level(logging.INFO, "holdfast.test")
    return lambda: Counter(r.msg.event for r in caplog.records if isinstance(r.msg, LogMessage))


@pytest.fixture
def announcer(shown: Shown) -> Announcer:
    return Announcer(EventLog("holdfast.test"), lambda _seconds: None)


def failed_for_good(claim: Claim) -> Settlement:
    return settled(claim, Failed(task_error(retriable=False)))


def test_of_many_retries_and_releases_the_first_are_shown_and_the_others_counted(
    announcer: Announcer, shown: Shown
) -> None:
    claim = a_claim()

    for _ in range(MOST_SHOWN):
        announcer.ended(claim, failure(claim))
        announcer.ended(claim, release(claim))

    assert shown() == {"task.retrying": MOST_SHOWN / 2, "task.released": MOST_SHOWN / 2}
    assert announcer.unsaid == {State.RETRYING: MOST_SHOWN / 2, State.QUEUED: MOST_SHOWN / 2}


def test_failures_for_good_and_rescues_are_always_shown(announcer: Announcer, shown: Shown) -> None:
    claim = a_claim()

    for _ in range(MOST_SHOWN + 1):
        announcer.ended(claim, failed_for_good(claim))
        announcer.ended(claim, loss(claim))

    assert shown() == {"task.failed": MOST_SHOWN + 1, "task.rescued": MOST_SHOWN + 1}


def test_a_new_period_counts_anew(announcer: Announcer, shown: Shown) -> None:
    claim = a_claim()
    for _ in range(MOST_SHOWN + 1):
        announcer.ended(claim, failure(claim))

    announcer.renew()
    announcer.ended(claim, failure(claim))

    assert shown() == {"task.retrying": MOST_SHOWN + 1}
    assert not announcer.unsaid
