"""Runs for tests of the worker's parts."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from holdfast.core.attempt import Claim, Report
from holdfast.core.task import Cause, Priority, TaskId, WorkerId
from holdfast.worker.run import Run


def a_claim(number: int = 1, **given: Any) -> Claim:
    claim = Claim(
        TaskId(f"task-{number}"), 1, WorkerId("worker-1"), "noop", "default", Priority.NORMAL,
        b"{}", 0, 3, 0, None, None, None, None, Cause.SUBMITTED, None, None, False,
    )  # fmt: skip
    return claim._replace(**given)


def a_run(
    deadline: float | None = None, reports: Callable[[Report], None] = lambda report: None
) -> Run:
    definition = SimpleNamespace(stop_grace=None)
    return Run(a_claim(), cast("Any", definition), deadline, reports)
