"""Where a worker's words go: standard error, as standard output belongs to the program.

Only if nobody configured structlog: a program that did has decided already.
"""

from __future__ import annotations

import sys

import structlog


def log_to_stderr() -> None:
    """Make standard error the default. Looked up at each use, for those who replace it."""
    if not structlog.is_configured():
        structlog.configure(logger_factory=lambda *_names: structlog.PrintLogger(sys.stderr))
