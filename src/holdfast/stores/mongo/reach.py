"""How far down the line to look for work.

MongoDB stops reading at a query's `limit`. Servers that only speak its protocol may sort all that
matches first, which in a long line takes long. Where looking at the whole line took too long for
what it brought, the next query says where it need not look beyond: a bound guessed from how the
last claim's tasks stood, moved on when it brought too few, and dropped in the end. A wrong guess
costs another short query, never a task.

Places in line are numbers here: rank, id and version read as one. Tasks submitted together share
their rank and differ by id, others differ by rank; so there are two measures, how far apart tasks
of one rank stand, and how far apart ranks do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

_BYTES: Final = 28
_LAST: Final = (1 << 8 * _BYTES) - 1
_RANK: Final = 1 << 8 * (_BYTES - 8)
"""What one microsecond of rank is worth."""
_FURTHER: Final = tuple(1 << power for power in range(16))
_FEW: Final = 8
_QUICK: Final = 0.03
_EACH: Final = 0.000_5
"""Seconds that a query may take without being thought to have read more than it brought."""


class Reach:
    """What is known of one line. Others change it meanwhile: all of it is a guess."""

    def __init__(self) -> None:
        self._last: int | None = None  # where the last claim ended; None: look at the whole line
        self._apart = 0  # tasks, in the same rank
        self._step = 1000 * _RANK  # ranks

    def bounds(self, limit: int) -> Iterator[bytes | None]:
        """Where to stop looking: near first, then further, in the end nowhere."""
        if self._last is not None:
            near = self._apart * max(_FEW, limit + limit // 8)
            rank = self._last // _RANK * _RANK
            ranks = [rank + self._step * 5 // 4 * times for times in _FURTHER]
            highest = 0
            for bound in (self._last + near, self._last + 4 * near, *ranks):
                if highest < bound < _LAST:
                    highest = bound
                    yield bound.to_bytes(_BYTES, "big")
        yield None

    def learn(self, found: Sequence[bytes], *, more: bool, seconds: float) -> None:
        """Remember how the tasks of a claim stood, first to last, and how long the last query took.
        Not `more`: the line is short, and guessing would only cost.
        """
        is_quick = self._last is None and seconds < _QUICK + _EACH * len(found)
        if is_quick or not more or len(found) < 2:
            self._last = None
            return
        numbers = [int.from_bytes(place, "big") for place in found]
        ranks = sorted({number // _RANK for number in numbers})
        if self._last is not None and self._last // _RANK < ranks[0]:
            ranks.insert(0, self._last // _RANK)
        if len(ranks) > 1:
            self._step = (ranks[-1] - ranks[0]) // (len(ranks) - 1) * _RANK
        alike = [number for number in numbers if number // _RANK == ranks[-1]]
        measured = alike if len(alike) >= min(_FEW, len(numbers)) else numbers
        self._last = numbers[-1]
        self._apart = max(1, (measured[-1] - measured[0]) // (len(measured) - 1))
