"""Where a worker's words go: standard error, as standard output belongs to the program.

Only if nobody configured structlog: a program that did has decided already.
"""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import Processor

_JSON: list[Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso"),
    structlog.processors.dict_tracebacks,
    structlog.processors.JSONRenderer(),
]


def log_to_stderr(*, as_json: bool = False, least: int = logging.NOTSET) -> None:
    """Make standard error the default. Looked up at each use, for those who replace it.

    With `as_json` every event is one JSON object on a line of its own. Events below `least` are
    dropped.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        logger_factory=lambda *_names: structlog.PrintLogger(sys.stderr),
        processors=_JSON if as_json else None,
        wrapper_class=structlog.make_filtering_bound_logger(least),
    )
