"""Lexemes under a cursor, and the phrases that readers find in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.assistant.language.lexicon import Lexeme, Pack, Value


@dataclass(frozen=True, slots=True)
class Phrase:
    """A reading of the lexemes from `start` up to `end`, which is not inside.

    `weak` marks what may as well belong to the purpose; `marked` what a preposition introduced.
    """

    kind: str
    value: Value
    start: int
    end: int
    weak: bool = False
    marked: bool = False


_MOST_SKIPPED: Final = 8

NO_TIME: Final = frozenset({
    "lead", "op", "op_mid", "generic", "channel", "other_channel", "chat", "pronoun", "only", "all",
    "add_channel", "remove_channel", "set_lead", "instead", "rename_to", "all_channels", "glue",
    "birthday", "about", "rename_noun", "task_noun", "filler", "op_now", "next_run",
    "op_split", "op_shift", "that", "roughly", "thanks", "statement",
    "points_at", "again", "for_now", "for_good", "negative", "enough", "called", "aside", "reason",
    "says_is", "too_much", "same", "small", "backward", "hold_words", "back_on", "turn_off",
    "time_noun", "idiom", "meal",
    "one_word", "no_more", "defers", "forward", "via",
})  # fmt: skip
"""Kinds that say nothing about time."""

Reading = tuple[list[tuple[str, Value]], int]
"""Kinds with values, and the place behind them."""


class Stream:
    """The lexemes of one sentence."""

    __slots__ = ("items", "pack")

    def __init__(self, items: list[Lexeme], pack: Pack) -> None:
        self.items = items
        self.pack = pack

    def get(self, at: int, kind: str) -> Value | None:
        """The value of a kind at a place; None if it has no such kind, or beyond the ends."""
        return self.items[at].kinds.get(kind) if 0 <= at < len(self.items) else None

    def has(self, at: int, *kinds: str) -> bool:
        """Whether the lexeme at a place is of one of these kinds."""
        if not 0 <= at < len(self.items):
            return False
        held = self.items[at].kinds
        for kind in kinds:  # noqa: SIM110 - the innermost loop of all; `any` doubles its time
            if kind in held:
                return True
        return False

    def text(self, at: int) -> str:
        """The folded text at a place, empty beyond the ends."""
        return self.items[at].text if 0 <= at < len(self.items) else ""

    def number(self, at: int, kind: str = "num") -> int | None:
        """A whole number at a place."""
        value = self.get(at, kind)
        return value if isinstance(value, int) else None

    def word(self, at: int, kind: str) -> str | None:
        """A text value at a place."""
        value = self.get(at, kind)
        return value if isinstance(value, str) else None

    def skip(self, at: int, *kinds: str) -> int:
        """The first place from `at` on that is of none of these kinds, or a few places further.

        Bounded, so that no repetition of small words makes reading slow.
        """
        last = at + _MOST_SKIPPED
        while at < last and self.has(at, *kinds):
            at += 1
        return at

    def is_plain(self, at: int) -> bool:
        """Whether an ordinary word stands there, one that says nothing about time."""
        if not 0 <= at < len(self.items):
            return False
        item = self.items[at]
        return item.shape in ("word", "quote", "han") and not (set(item.kinds) - NO_TIME)
