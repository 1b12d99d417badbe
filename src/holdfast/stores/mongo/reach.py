"""How far down the line to look for work, where looking at all of it is dear.

MongoDB stops reading at a query's `limit`, and nothing here is needed. Servers that only speak its
protocol may read all that matches first, which in a long line takes long. Which kind it is, one
`explain` tells, as soon as there is a line. For the other kind the query says where it need not
look beyond.

That bound comes from **milestones**: every sixteenth task or so, chosen by its id, has a mark of
its own while it is ready, and an index holds nobody else. They tell how dense the line is, whoever
submitted it and however it is spread over lanes. Between two of them the last claim tells how far
apart tasks of one rank stand. All of it is a guess, because others change the line meanwhile: a
wrong one costs another short query, never a task.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.stores.mongo.documents import MILESTONES

_BYTES: Final = 28
_LAST: Final = (1 << 8 * _BYTES) - 1
_RANK: Final = 1 << 8 * (_BYTES - 8)
"""What one microsecond of rank is worth, where rank, id and version are read as one number."""
_FEW: Final = 8
_AGAIN: Final = 15.0
"""Seconds after which to look for milestones again, where there were none to speak of."""


class Reach:
    """What is known of one line."""

    def __init__(self) -> None:
        self._milestones: list[int] = []
        self._is_cut_off = True  # there may be more milestones than those
        self._scouted_at: float | None = None
        self._last = 0  # where the last claim ended
        self._apart = 0  # tasks of one rank; 0: unknown

    def wants_milestones(self, limit: int, now: float) -> bool:
        """Whether those ahead do not suffice, and it is worth asking for more. `now` is of any
        clock that does not jump.
        """
        ahead = len(self._milestones) - bisect_right(self._milestones, self._last)
        if ahead > _steps(limit):
            return False
        return self._is_cut_off or self._scouted_at is None or now - self._scouted_at > _AGAIN

    def scouted(self, found: Sequence[bytes], now: float, *, more: bool) -> None:
        """Take up the milestones of the line, in any order; `more`: there are others beyond."""
        self._milestones = sorted(int.from_bytes(place, "big") for place in found)
        self._is_cut_off = more and bool(found)
        self._scouted_at = now

    def bounds(self, limit: int) -> Iterator[bytes | None]:
        """Where to stop looking: near first, then further, in the end nowhere."""
        ahead = self._milestones[bisect_right(self._milestones, self._last) :]
        steps = _steps(limit)
        near = self._last + self._apart * max(_FEW, limit + limit // 8)
        beyond = bisect_right(ahead, near)
        if self._apart and beyond < len(ahead) and _rank(ahead[beyond]) == _rank(near):
            yield _place(near)
            steps = max(steps, beyond)
        while steps < len(ahead):
            yield _place(ahead[steps])
            steps += steps // 2 + 1
        yield None

    def learn(self, found: Sequence[bytes]) -> None:
        """Remember how the tasks of a claim stood, first to last."""
        if not found:
            return
        numbers = [int.from_bytes(place, "big") for place in found]
        alike = [number for number in numbers if _rank(number) == _rank(numbers[-1])]
        self._last = numbers[-1]
        self._apart = (alike[-1] - alike[0]) // (len(alike) - 1) if len(alike) >= _FEW else 0


def _steps(limit: int) -> int:
    """How many milestones from here there are as many tasks, rather than not."""
    return max(1, (limit + limit // 2) // MILESTONES)


def _rank(number: int) -> int:
    return number // _RANK


def _place(number: int) -> bytes:
    return min(number, _LAST).to_bytes(_BYTES, "big")
