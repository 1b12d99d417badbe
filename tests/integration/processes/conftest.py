"""A pool of real processes, and attempts to run in it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio

from holdfast.core.attempt import Claim, Report
from holdfast.core.task import Cause, Priority, TaskId, WorkerId
from holdfast.settings import Settings
from holdfast.worker.liveness import Liveness, liveness
from holdfast.worker.loading import load_app
from holdfast.worker.processes.runner import ProcessRunner
from holdfast.worker.run import Run

BODIES = Path(__file__).with_name("bodies.py")
SPEC = f"{BODIES}:app"


@pytest.fixture(scope="session")
def bodies() -> ModuleType:
    load_app(SPEC)
    return sys.modules["bodies"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[ProcessRunner]:
    runner = ProcessRunner(SPEC, Settings.load(), 4)
    yield runner
    await runner.close()


def attempt(
    definition: Any,
    timeout: float | None = 30.0,
    reports: list[Report] | None = None,
    number: int = 3,
    grace: float = 0.0,
    **kwargs: Any,
) -> Run:
    """One attempt at a task with these arguments."""
    claim = Claim(
        task_id=TaskId("01977d3c-0000-7000-8000-000000000001"),
        attempt=number,
        worker_id=WorkerId("worker-1"),
        name=definition.name,
        queue="default",
        priority=Priority.NORMAL,
        payload=json.dumps(kwargs).encode(),
        charged=0,
        max_retries=3,
        crash_count=0,
        timeout=timeout,
        retry=None,
        lock=None,
        fence=None,
        cause=Cause.SUBMITTED,
        trace=None,
        owner=None,
        cancel_requested=False,
    )
    deadline = None if timeout is None else time.monotonic() + timeout
    sink = [] if reports is None else reports
    return Run(claim, definition, deadline, sink.append, time.monotonic(), grace=grace)


def is_gone(pid: int) -> bool:
    return liveness(pid) is Liveness.GONE


def pid_in(file: Path) -> int:
    """The process id that a body wrote there; 0 if it has not come so far."""
    # The file exists a moment before it has its text.
    return int(file.read_text() or 0) if file.exists() else 0
