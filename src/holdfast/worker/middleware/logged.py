"""Says when each task starts and ends. Off by default: at full speed nobody could read it."""

from __future__ import annotations

import time

import structlog

from holdfast.core.lifecycle import Outcome
from holdfast.worker.middleware.chain import Execute
from holdfast.worker.run import Run

log = structlog.get_logger("holdfast.worker")


async def logged(run: Run, inner: Execute) -> Outcome:
    """Log `task.started` and `task.ended`, at debug level."""
    claim = run.claim
    say = log.bind(task=claim.task_id, name=claim.name, attempt=claim.attempt)
    say.debug("task.started", queue=claim.queue, cause=claim.cause)
    started = time.monotonic()
    outcome = await inner(run)
    seconds = round(time.monotonic() - started, 6)
    say.debug("task.ended", outcome=type(outcome).__name__.lower(), seconds=seconds)
    return outcome
