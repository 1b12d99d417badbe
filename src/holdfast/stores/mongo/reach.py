"""How far down the line to look for work.

MongoDB stops reading at a query's `limit`. Servers that only speak its protocol may sort all that
matches first, which in a long line takes long. So the query says where it need not look beyond: a
bound guessed from how the last claim's tasks stood, moved on when it brought too few, and dropped
in the end. A wrong guess costs another short query, never a task.

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
_FURTHER: Final = (1, 8, 64, 512, 4096, 32768)
_FEW: Final = 8


class Reach:
    """What is known of one line. Others change it meanwhile: all of it is a guess."""

    def __init__(self) -> None:
        self._last: int | None = None  # where the last claim ended; None: look at the whole line
        self._apart = 0  # tasks, in the same rank
        self._step = 1000 * _RANK  # ranks

    def bounds(self, limit: int) -> Iterator[bytes | None]:
        """Where to stop looking: near first, then further, in the end nowhere."""
        if self._last is not None:
            near = self._last + self._apart * max(_FEW, limit + limit // 4)
            ranks = (self._last // _RANK * _RANK + self._step * times for times in _FURTHER)
            for bound in (near, *(bound for bound in ranks if bound > near)):
                if bound < _LAST:
                    yield bound.to_bytes(_BYTES, "big")
        yield None

    def learn(self, found: Sequence[bytes], *, more: bool) -> None:
        """Remember how the tasks of a claim stood, first to last. Not `more`: the line is short,
        and guessing would only cost.
        """
        if not more or len(found) < 2:
            self._last = None
            return
        numbers = [int.from_bytes(place, "big") for place in found]
        ranks = sorted({number // _RANK for number in numbers})
        if len(ranks) > 1:
            self._step = (ranks[-1] - ranks[0]) // (len(ranks) - 1) * _RANK
        alike = [number for number in numbers if number // _RANK == ranks[-1]]
        measured = alike if len(alike) >= min(_FEW, len(numbers)) else numbers
        self._last = numbers[-1]
        self._apart = max(1, (measured[-1] - measured[0]) // (len(measured) - 1))
