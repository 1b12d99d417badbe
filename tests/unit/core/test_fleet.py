"""The workers, as people are shown them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.core.fleet import WorkerStatus, shown_capabilities
from holdfast.testing.factories import worker_info

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_only_capabilities_that_somebody_typed_are_shown() -> None:
    all_of_them = {"http", "task:shop.bill", "token:17", "gpu", "a100", "https"}

    assert shown_capabilities(all_of_them) == ["a100", "gpu", "https"]


@pytest.mark.parametrize(
    ("status", "silence", "shown"),
    [
        (WorkerStatus.ACTIVE, 29, WorkerStatus.ACTIVE),
        (WorkerStatus.ACTIVE, 31, WorkerStatus.SILENT),
        (WorkerStatus.DRAINING, 31, WorkerStatus.SILENT),
        (WorkerStatus.DEAD, 31, WorkerStatus.DEAD),
        (WorkerStatus.STOPPED, 31, WorkerStatus.STOPPED),
    ],
)
def test_a_worker_that_has_not_beaten_for_a_lease_is_shown_as_silent(
    status: WorkerStatus, silence: int, shown: WorkerStatus
) -> None:
    worker = replace(worker_info(status=status), beat_at=NOW - timedelta(seconds=silence))

    assert worker.seen(now=NOW, lease=30.0).status is shown
