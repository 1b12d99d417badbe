"""Places between two writes where a test may kill this process, by name.

`HOLDFAST_TEST_KILL_AT=name` kills it -9 there, as the power would; `name:3` the third time. Unset,
a point costs one comparison. `POINTS` names them all: a test goes through it, so that none is
added without being died at.
"""

from __future__ import annotations

import os
import signal
from typing import Final

POINTS: Final = (
    "lane-known",  # a new lane is on the board; its first task is not written
    "added",  # tasks with locks are in, all blocked
    "key-released",  # a used-up idempotency key was taken off its old task
    "alarms-rung",  # what was due moved; its locks were not passed on
    "claimed",  # tasks are running for a worker who has not heard of it
    "fence-drawn",  # the fence counter grew; the tasks do not have theirs
    "chapter-written",  # history was copied out of a document, and is still in it
    "settled",  # attempts have ended; their locks are free and nobody has them
    "completed",  # a handler's transaction is committed; its lock was not passed on
    "refused",  # a refusal stands in the history and is not counted
    "demoted",  # a ready holder gave its lock away; its rival does not have it yet
    "operated",  # an operator's step is written; its locks were not passed on
    "forgotten",  # tasks are gone; their chapters are not
)
_WANTED: Final = os.environ.get("HOLDFAST_TEST_KILL_AT", "").partition(":")
_passed = 0


def reached(point: str) -> None:
    """Die here, if a test wants it so."""
    if point == _WANTED[0]:
        _die_in_turn()


def _die_in_turn() -> None:
    global _passed  # noqa: PLW0603 - once per process, and only in tests
    _passed += 1
    if _passed == int(_WANTED[2] or 1):
        os.kill(os.getpid(), signal.SIGKILL)
