"""`python -m holdfast.worker.main <options> <fd> <parent>`: one worker process of a supervisor.

Builds the app and runs its worker. SIGTERM and SIGINT begin the drain, and a second one hurries it;
the supervisor asks for the same over the line, where the levels of both are compared, not added.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from types import TracebackType

from holdfast.errors import HoldfastError, SchemaMismatch
from holdfast.worker.line import DRAIN, NOW, REFUSED_CODE, SupervisorLine
from holdfast.worker.liveness import die_with_parent
from holdfast.worker.loading import load_app
from holdfast.worker.options import WorkerOptions
from holdfast.worker.worker import Worker


class Stopper:
    """Turns requests to stop, by level, into the worker's two stops."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._level = 0
        self._signals = 0

    def to(self, level: int) -> None:
        """Be as urgent as this, at least."""
        while self._level < min(level, NOW):
            self._level += 1
            self._worker.stop()

    def signalled(self) -> None:
        self._signals += 1
        self.to(self._signals)
