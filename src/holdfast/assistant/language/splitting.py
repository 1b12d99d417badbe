"""Words that are written together: "Montagabend", "jusqu'au", "Dreiviertelstunde".

A pack names its compounds, and the short words that lose their vowel in front of another. Tokens
are split before words are looked up, so that lexicons need the parts only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.assistant.language.tokens import Token


def split_tokens(
    tokens: list[Token], compounds: Mapping[str, tuple[str, ...]], elisions: frozenset[str]
) -> list[Token]:
    """The tokens with every compound and every elided word taken apart."""
    if not compounds and not elisions:
        return tokens
    found: list[Token] = []
    for token in tokens:
        if token.kind != "word":
            found.append(token)
        elif token.text in compounds:
            found += _parts(token, compounds[token.text])
        else:
            found += _elided(token, elisions)
    return found


def _elided(token: Token, elisions: frozenset[str]) -> list[Token]:
    """ "l'aube" is "l" and "aube"."""
    short, mark, rest = token.text.partition("'")
    if not mark or short not in elisions:
        return [token]
    if not rest:
        return [replace(token, text=short)]
    middle = token.start + len(short) + 1
    return [
        replace(token, text=short, end=middle),
        replace(token, text=rest, start=middle, glued=True),
    ]


def _parts(token: Token, texts: tuple[str, ...]) -> list[Token]:
    """One token for each text; where they are no plain cut, each spans the whole word."""
    if sum(map(len, texts)) != token.end - token.start:
        return [replace(token, text=text) for text in texts]
    found: list[Token] = []
    place = token.start
    for text in texts:
        found.append(replace(token, text=text, start=place, end=place + len(text)))
        place += len(text)
    return found
