"""Words with a small typing mistake: "tomorow", "evrey", "mintues".

A mistake is one letter too many, too few, another or swapped with its neighbour; two of them in
long words. The first letter must be right, and a word that exists is never taken for a mistake.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_SHORTEST: Final = 5
_SHORTEST_TYPED: Final = 4
_LONG: Final = 8


@dataclass(frozen=True)
class Speller:
    """`words` may be found; a word in `known` is what it is."""

    words: frozenset[str]
    known: frozenset[str]

    @cached_property
    def _by_letter(self) -> dict[tuple[str, int], list[str]]:
        found: dict[tuple[str, int], list[str]] = defaultdict(list)
        for word in self.words:
            if len(word) >= _SHORTEST:
                found[word[0], len(word)].append(word)
        return dict(found)

    def find(self, typed: str) -> str | None:
        """The word that was meant, if there is exactly one nearest."""
        length = len(typed)
        if length < _SHORTEST_TYPED or length > 14 or typed in self.known or not typed.isascii():
            return None
        best: tuple[int, str] | None = None
        tied = False
        for size in range(length - 2, length + 3):
            for word in self._by_letter.get((typed[0], size), ()):
                limit = 2 if size >= _LONG and length > _SHORTEST else 1
                distance = _distance(typed, word, limit)
                if distance > limit:
                    continue
                if best is None or distance < best[0]:
                    best, tied = (distance, word), False
                elif distance == best[0]:
                    tied = True
        return None if best is None or (tied and best[0] > 1) else best[1]


def _distance(one: str, other: str, limit: int) -> int:
    """Edits between two words, swaps of neighbours counted once; above `limit` just larger."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(row[j - 1] + 1, before[j] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
