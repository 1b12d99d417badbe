"""Tracebacks for the log, as plain text.

structlog's own ways to show an exception print the variables of every frame, where payloads,
results and secrets are.
"""

from __future__ import annotations

import traceback
from typing import Final

LONGEST: Final = 20_000
"""Characters kept, from the end: a message may quote what it is about."""


def trace_of(error: BaseException) -> str:
    """The traceback with its message, for the key `exception` of a log event."""
    return "".join(traceback.format_exception(error)).rstrip()[-LONGEST:]
