"""Tells the language of a request by its script and its small words."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Pack
from holdfast.assistant.language.packs.chinese import CHINESE
from holdfast.assistant.language.packs.english import ENGLISH
from holdfast.assistant.language.packs.french import FRENCH
from holdfast.assistant.language.packs.german import GERMAN
from holdfast.assistant.language.packs.hindi import HINDI
from holdfast.assistant.language.packs.spanish import SPANISH
from holdfast.assistant.language.tokens import Token

PACKS: Final[dict[str, Pack]] = {
    each.name: each for each in (ENGLISH, GERMAN, SPANISH, FRENCH, HINDI, CHINESE)
}
_LATIN: Final = ("en", "de", "es", "fr")


def pack_of(tokens: list[Token]) -> Pack:
    """The pack whose words the tokens are; English if that is not clear."""
    if any(each.kind == "han" for each in tokens):
        return PACKS["zh"]
    words = {each.text for each in tokens if each.kind == "word"}
    if any("\u0900" <= word[0] <= "\u097f" for word in words):
        return PACKS["hi"]
    best, most = ENGLISH, _known(tokens, ENGLISH)
    for name in _LATIN[1:]:
        found = _known(tokens, PACKS[name])
        if found > most:
            best, most = PACKS[name], found
    return best


def _known(tokens: list[Token], pack: Pack) -> int:
    """How many words are in phrases of the pack; "le week-end" counts as three."""
    texts = [each.text for each in pack.cut(tokens)]
    found = place = 0
    while place < len(texts):
        size = 0
        for phrase in pack.longest.get(texts[place], ()):
            if len(phrase) == 1 or tuple(texts[place : place + len(phrase)]) == phrase:
                size = len(phrase)
                found += sum(1 for each in phrase if each.isalpha())
                break
        place += size or 1
    return found
