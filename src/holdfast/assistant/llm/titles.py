"""Whether a title that a model proposes may be shown.

A title stands in notifications and subjects of mails, where a hostile one could pass for a message
of its own. So it must be short, plain, and made of the user's words: most of its words begin like
one of theirs, and no number, address or link is in it that the user did not write.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from holdfast.assistant.llm.schema import LONGEST_TITLE

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_ADDRESS: Final = re.compile(r"\S+://\S*|www\.\S+|\S+@\S+|\S+\.\w{2,}(?:/\S*)?|[<>\[\]{}`|\\]")
_NUMBER: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"[^\W\d_]+")
_ALIKE: Final = 4
"""Letters that must be the same for two words to be forms of one."""
_SMALL: Final = 3
"""Words up to this length (of, the, für) say nothing, wherever they come from."""


def fit_title(proposed: object, text: str) -> str | None:
    """The title, cleaned; None if it is none that the user's words support."""
    if not isinstance(proposed, str) or len(proposed) > 4 * LONGEST_TITLE:
        return None
    title = " ".join("".join(map(_shown, unicodedata.normalize("NFC", proposed))).split())
    if not title or len(title) > LONGEST_TITLE:
        return None
    theirs = unicodedata.normalize("NFC", text).casefold()
    strange = [*_ADDRESS.findall(title), *_NUMBER.findall(title)]
    if any(each.casefold() not in theirs for each in strange):
        return None
    return title if _is_theirs(title.casefold(), theirs) else None


def _is_theirs(title: str, text: str) -> bool:
    words = [word for word in _WORD.findall(title) if len(word) > _SMALL]
    if not words:
        return title in text
    known = {word[:_ALIKE] for word in _WORD.findall(text)}
    ours = [word for word in words if word[:_ALIKE] in known or word in text]
    return 3 * len(ours) >= 2 * len(words)


def _shown(char: str) -> str:
    """The character, unless it shows nothing; a line break parts words."""
    if char in "\n\r\t":
        return " "
    return "" if unicodedata.category(char) in _HIDDEN else char
