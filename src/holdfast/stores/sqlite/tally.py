"""Counts what a transaction changes, and writes the sums once, at its end."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Final

from holdfast.core.task import State
from holdfast.stores.sqlite.queries import STATS, as_json

# Where a task is: the numbers in column `place`. Plain ints, because the driver binds an IntEnum at
# a fifth of the speed.
WAITING: Final = 0
READY: Final = 1
BLOCKED: Final = 2
RUNNING: Final = 3
DONE: Final = 4

PLACE_KINDS: Final = {WAITING: "waiting", READY: "ready", BLOCKED: "blocked"}
"""Places that are counted by lane. Running tasks are few and counted by looking."""

_SECOND: Final = 1_000_000


class Tally:
    """The differences that one transaction makes to table `tally`."""

    def __init__(self) -> None:
        self._sums = Counter[tuple[str, int]]()

    def move(self, lane: int, old: int | None, new: int | None, number: int = 1) -> None:
        """Tasks of a lane go from one place to another; None is outside the store."""
        if old in PLACE_KINDS:
            self._sums[PLACE_KINDS[old], lane] -= number
        if new in PLACE_KINDS:
            self._sums[PLACE_KINDS[new], lane] += number

    def retrying(self, number: int) -> None:
        """Tasks begin (or cease, if negative) to wait as `retrying`."""
        self._sums[f"state:{State.RETRYING}", 0] += number

    def ended(self, state: str, at: int, number: int = 1) -> None:
        """Tasks ended in a state at an instant (negative: are no longer among the ended)."""
        self._sums[f"state:{state}", 0] += number
        self._sums[f"ended:{state}", at // _SECOND] += number

    def refused(self, number: int) -> None:
        self._sums["refused", 0] += number

    def write(self, db: sqlite3.Connection) -> None:
        """Add the sums to the table, in one statement."""
        changes = [(kind, key, n) for (kind, key), n in self._sums.items() if n]
        if changes:
            db.execute(STATS["add_to_tally"], (as_json(changes),))
