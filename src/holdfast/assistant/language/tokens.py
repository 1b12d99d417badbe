"""Cuts a sentence into tokens, each of which knows which characters it came from.

Letters are folded (case, width, Latin accents), digits of other scripts become ASCII, and quoted
text becomes a single token: what stands in quotes is content and never says when.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

_LETTER: Final = r"[^\W\d_\u4e00-\u9fff]|[\u0300-\u036f\u0900-\u0963\u0970-\u097f\u200c\u200d]"
_SHAPES: Final = re.compile(
    r"""
      (?P<quote>"[^"]*"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|『[^』]*』|`[^`]*`
        |(?<![\w'])'(?=\S)[^']*(?:'\w+[^']*)*?(?<=\S)'(?!\w))
    | (?P<link>https?://\S+|\S+@\S+\.\w+)
    | (?P<iso>\d{4}(?P<sep>[-/.])\d{1,2}(?P=sep)\d{1,2}(?=[t\s,;:)]|$|[^\w-]))
    | (?P<dotted>(?<![\d.])\d{1,2}\.\s?\d{1,2}\.(?:\s?\d{4}|\d{2}(?!\d))?(?!\d))
    | (?P<slashed>(?<![\d/])\d{1,2}/\d{1,2}(?:/\d{2,4})?(?![\d/]))
    | (?P<clock>(?<![\d:])\d{1,2}:\d{2}(?::\d{2})?(?!\d|:\d))
    | (?P<dotclock>(?<![\d.])\d{1,2}\.\d{2}(?=\s?(?:[ap]\.?\s?m\b|uhr\b|h\b)))
    | (?P<half>[ap]\.\s?m\.?(?!\w))
    | (?P<number>\d+(?:[.,]\d+)*)
    | (?P<han>[\u4e00-\u9fff])
    | (?P<elided>(?<!\w)[ld]'(?=LETTER|$))
    | (?P<word>(?:LETTER)+(?:'(?:LETTER)+)*)
    | (?P<mark>\S)
    """.replace("LETTER", _LETTER),
    re.VERBOSE,
)
_SAME: Final = str.maketrans(
    "’‘ʼ—–−週點個號鐘時後兩禮間從開為復刪過發", "'''---周点个号钟时后两礼间从开为复删过发"
)
"""Quotes and dashes, and traditional forms of the characters that the Chinese pack uses."""


@dataclass(frozen=True, slots=True)
class Token:
    """A folded piece of text; `start` and `end` are places in the text as it was given."""

    kind: str
    text: str
    start: int
    end: int
    glued: bool


def tokens_of(text: str) -> list[Token]:
    """The tokens of a sentence, in order."""
    folded, places = _fold(text)
    found: list[Token] = []
    behind = -1
    for match in _SHAPES.finditer(folded):
        kind = match.lastgroup or "mark"
        kind = "word" if kind == "elided" else kind
        if match[0] == "t" and found and found[-1].kind == "iso" and match.start() == behind:
            behind = match.end()
            continue  # the T between an ISO date and its time
        start, end = places[match.start()], places[match.end() - 1] + 1
        found.append(Token(kind, match[0], start, end, match.start() == behind))
        behind = match.end()
    return found


def _fold(text: str) -> tuple[str, list[int]]:
    plain = text.translate(_SAME)
    if plain.isascii():
        return plain.lower(), list(range(len(plain)))
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(plain):
        for each in _fold_letter(letter):
            letters.append(each)
            places.append(place)
    return "".join(letters), places


def _fold_letter(letter: str) -> str:
    if letter.isascii():
        return letter.lower()
    wide = unicodedata.normalize("NFKC", letter).lower().replace("\u093c", "")
    if len(wide) == 1 and wide.isdigit() and not wide.isascii():
        return str(unicodedata.digit(wide))
    if "\u00c0" <= wide[:1] <= "\u024f" or "\u1e00" <= wide[:1] <= "\u1eff":
        parts = unicodedata.normalize("NFD", wide)
        return "".join(each for each in parts if not unicodedata.combining(each))
    if wide in ("\u0301", "\u0300", "\u0302", "\u0303", "\u0308", "\u0327", "\u093c"):
        return ""
    return wide


def fold(text: str) -> str:
    """The folded form of a word or phrase, as lexicons keep it."""
    return _fold(text)[0]
