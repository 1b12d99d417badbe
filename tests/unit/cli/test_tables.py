"""How tasks and workers look to people."""

from __future__ import annotations

from holdfast.cli.tables import _worker_row
from holdfast.core.task import TaskId
from holdfast.testing.factories import worker_info


def test_a_worker_that_a_body_blocks_says_by_which_task() -> None:
    row = _worker_row(worker_info(blocked_by=TaskId("0197f3c2")))

    assert "active, blocked by 0197f3c2" in row
    assert "active" in _worker_row(worker_info())
