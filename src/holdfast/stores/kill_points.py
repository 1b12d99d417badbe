"""Places between two writes where a test may kill this process, by name.

`HOLDFAST_TEST_KILL_AT=name` kills it -9 there, as the power would; `name:3` the third time. Unset,
a point costs one comparison, and the paths that plain tasks take have none in the SQL stores.
`POINTS` and `IN_A_COMMIT` name them all: a test goes through each of them, so that none is added
without being died at.
"""

from __future__ import annotations

import os
import signal
from typing import Final

IN_A_COMMIT: Final = (
    "tasks-added",  # of new tasks and records that are written together, the tasks are
    "record-written",  # and one of the records, or all that are new
    "end-written",  # the end of an attempt is, and nothing of what it brings along
    "written",  # all of a transaction is written; nothing of it is committed
    "committed",  # it is; nobody was told (not SQLite: its writer tells at once)
)
"""On every store, in what writes several things together."""
POINTS: Final = (
    "lane-known",  # a new lane is on the board; its first task is not written
    "claimed",  # tasks are running for a worker who has not heard of it
    "fence-drawn",  # the fence counter grew; nobody has got one
    "chapter-written",  # history was copied out of a document, and is still in it
    "settled",  # attempts have succeeded; nobody was told
    "written",  # all of a transaction is written; nothing of it is committed
    "committed",  # it is; nobody was told
    "completed",  # a handler's transaction is committed; its lock was not passed on
    "refused",  # a refusal stands in the history and is not counted
)
"""On MongoDB."""
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
