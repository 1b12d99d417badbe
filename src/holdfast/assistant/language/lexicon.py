"""Language packs, and the lexemes of a sentence.

A pack is data: for each kind of lexeme (weekday, unit, "every" …) the words and phrases that mean
it, with a value. One word may be of several kinds ("second" is a unit and an ordinal); readers take
the kind that they need. Phrases are matched longest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from holdfast.assistant.language.spelling import Speller
from holdfast.assistant.language.splitting import split_tokens
from holdfast.assistant.language.tokens import Token, fold, tokens_of

Value = object
Words = Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True)
class Pack:
    """One language.

    Attributes:
        name: its two-letter code.
        words: kind to phrases to value; several phrases of one value are joined by `|`.
        written_hours: hours are of a 24-hour clock unless a part of the day is named.
        spelled: kinds whose words are recognised with a small typing mistake.
        spelled_words: words of other kinds that are recognised so as well.
        real_words: words that look like mistakes of such words and are none.
        dotted_ordinals: `15.` is an ordinal.
        half_before: "half eight" is 07:30, as in German.
        slashed_day_first: `24/12` is the 24th of December.
        compounds: folded words to the words that they are made of.
        elisions: what may stand before an apostrophe and is a word of its own.
    """

    name: str
    words: Words
    written_hours: bool = True
    spelled: tuple[str, ...] = ()
    spelled_words: frozenset[str] = frozenset()
    real_words: frozenset[str] = frozenset()
    dotted_ordinals: bool = False
    half_before: bool = False
    slashed_day_first: bool = True
    compounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    elisions: frozenset[str] = frozenset()

    def cut(self, tokens: list[Token]) -> list[Token]:
        """The tokens with words that are written together taken apart."""
        return split_tokens(tokens, self.compounds, self.elisions)

    @cached_property
    def phrases(self) -> dict[str, dict[tuple[str, ...], dict[str, Value]]]:
        """First token to whole phrases to kinds."""
        found: dict[str, dict[tuple[str, ...], dict[str, Value]]] = {}
        for kind, entries in self.words.items():
            for spellings, value in entries.items():
                for spelling in spellings.split("|"):
                    parts = tuple(each.text for each in self.cut(tokens_of(spelling)))
                    found.setdefault(parts[0], {}).setdefault(parts, {})[kind] = value
        return found

    @cached_property
    def longest(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """First token to its phrases, longest first."""
        return {
            first: tuple(sorted(phrases, key=len, reverse=True))
            for first, phrases in self.phrases.items()
        }

    @cached_property
    def speller(self) -> Speller:
        """Finds the word that was meant by a mistyped one."""
        words = [
            fold(spelling)
            for kind in self.spelled
            for spellings in self.words.get(kind, {})
            for spelling in spellings.split("|")
        ]
        known = frozenset(each for each in self.phrases)
        return Speller(
            words=frozenset(each for each in words if each.isalpha()) | self.spelled_words,
            known=known | self.real_words,
        )

    @cached_property
    def marks(self) -> frozenset[str]:
        """Words by which the language is told."""
        return frozenset(
            word for phrases in self.phrases.values() for phrase in phrases for word in phrase
        )


@dataclass(slots=True)
class Lexeme:
    """One or more tokens with everything that they may mean. `kinds` is empty for plain words."""

    text: str
    start: int
    end: int
    kinds: dict[str, Value] = field(default_factory=dict)
    shape: str = "word"
    glued: bool = False


_TENS: Final = frozenset(range(20, 100, 10))


def lexemes_of(text: str, tokens: list[Token], pack: Pack) -> list[Lexeme]:
    """The lexemes of a sentence in one language."""
    tokens = pack.cut(tokens)
    found: list[Lexeme] = []
    place = 0
    while place < len(tokens):
        lexeme, place = _next_lexeme(tokens, place, pack)
        found.append(lexeme)
    return _with_numbers(found, pack)


def _next_lexeme(tokens: list[Token], place: int, pack: Pack) -> tuple[Lexeme, int]:
    token = tokens[place]
    if pack.name == "en" and _is_short_half(tokens, place):
        return _lexeme([token], {"ampm": token.text + "m"}), place + 1
    if token.kind in ("word", "han", "mark", "half") or token.text in pack.longest:
        found = _phrase_at(tokens, place, token.text, pack)
        if found is not None:
            return found
    if token.kind == "half":
        return _lexeme([token], {"ampm": token.text[0] + "m"}), place + 1
    if token.kind == "word":
        meant = pack.speller.find(token.text)
        corrected = None if meant is None else _phrase_at(tokens, place, meant, pack)
        return corrected or (_lexeme([token], {}), place + 1)
    return _lexeme([token], _shape(token)), place + 1


_LETTERED: Final = frozenset({
    "room", "flat", "apt", "apartment", "unit", "gate", "row", "seat", "class", "section", "form",
    "chapter", "exercise", "page", "no", "route", "bus", "train", "platform", "building", "house",
    "block", "suite",
})  # fmt: skip


def _is_short_half(tokens: list[Token], place: int) -> bool:
    """ "7a", "6:30p", but not "room 7a"."""
    token = tokens[place]
    if token.text not in ("a", "p") or not token.glued or not place:
        return False
    before = tokens[place - 1]
    named = place > 1 and tokens[place - 2].text in _LETTERED
    number = before.text.isdigit() and 1 <= int(before.text[:4]) <= 12
    return (number or before.kind == "clock") and not named


def _phrase_at(
    tokens: list[Token], place: int, first: str, pack: Pack
) -> tuple[Lexeme, int] | None:
    """The longest phrase that begins with a word and goes on with the tokens behind the place."""
    for phrase in pack.longest.get(first, ()):
        size = len(phrase)
        if size == 1 or tuple(t.text for t in tokens[place + 1 : place + size]) == phrase[1:]:
            return _lexeme(tokens[place : place + size], dict(pack.phrases[first][phrase])), (
                place + size
            )
    return None


def _lexeme(tokens: list[Token], kinds: dict[str, Value]) -> Lexeme:
    return Lexeme(
        text=" ".join(each.text for each in tokens),
        start=tokens[0].start,
        end=tokens[-1].end,
        kinds=kinds,
        shape=tokens[0].kind,
        glued=tokens[0].glued,
    )


def _shape(token: Token) -> dict[str, Value]:
    """What digits mean by their shape alone."""
    text = token.text
    match token.kind:
        case "number" if text.isdigit():
            return {"num": int(text[:8])}
        case "number" if text.count(".") == 1 and "," not in text:
            return _decimal(text)
        case "clock":
            parts = [int(each) for each in text.split(":")]
            return {
                "clock": (parts[0], parts[1], parts[2] if len(parts) > 2 else 0, text[0] == "0")
            }
        case "dotclock":
            hour, minute = text.split(".")
            return {"clock": (int(hour), int(minute), 0, text[0] == "0")}
        case "iso":
            year, month, day = map(int, text.replace("/", "-").replace(".", "-").split("-"))
            return {"date": (year, month, day)}
        case "dotted":
            day_, month_, year_ = (*(each.strip() for each in text.split(".")), "")[:3]
            full = int(year_) + (2000 if len(year_) == 2 else 0) if year_ else None
            return {"date": (full, int(month_), int(day_))}
        case "slashed":
            return {"slashed": tuple(map(int, text.split("/")))}
        case _:
            return {}


def _decimal(text: str) -> dict[str, Value]:
    """ "1.5" hours, or "7.30" o'clock where something says that it is a time."""
    whole, _, part = text.partition(".")
    kinds: dict[str, Value] = {}
    if text.endswith((".5", ".25", ".75")):
        kinds["decimal"] = float(text)
    if len(part) == 2 and len(whole) <= 2:
        kinds["dot_time"] = (int(whole), int(part), 0, text[0] == "0")
    return kinds


def _with_numbers(lexemes: list[Lexeme], pack: Pack) -> list[Lexeme]:
    """Joins number words ("twenty-five", "treinta y cinco") and ordinals ("15th", "15.")."""
    found: list[Lexeme] = []
    place = 0
    while place < len(lexemes):
        each = lexemes[place]
        if _is_abbreviated(lexemes, place):
            each = _merge(lexemes[place : place + 2], each.kinds)
            lexemes[place + 1] = each
            place += 1
        following = lexemes[place + 1] if place + 1 < len(lexemes) else None
        joined = _join_number(lexemes, place)
        if joined is not None:
            each, place = joined
        elif "num" in each.kinds and each.shape == "number" and following is not None:
            ending = following.glued and "nth_ending" in following.kinds
            dot = pack.dotted_ordinals and following.text == "." and following.glued
            if ending or (dot and place + 2 < len(lexemes)):
                each = _merge([each, following], {"ord": each.kinds["num"], "dot": dot})
                if dot:
                    each.kinds["num"] = each.kinds["ord"]
                place += 1
        found.append(each)
        place += 1
    return found


def _is_abbreviated(lexemes: list[Lexeme], place: int) -> bool:
    """ "Dec. 24", "Mon. at 9", "30 min. before": a full stop that ends no sentence."""
    each = lexemes[place]
    if len(each.text) > 5 or place + 2 >= len(lexemes) or lexemes[place + 1].text != ".":
        return False
    return lexemes[place + 1].glued and any(
        kind in each.kinds for kind in ("month", "weekday", "unit")
    )


def _join_number(lexemes: list[Lexeme], place: int) -> tuple[Lexeme, int] | None:
    first = lexemes[place]
    tens = first.kinds.get("num")
    if first.shape == "number" or tens not in _TENS:
        return None
    at = place + 1
    while at < len(lexemes) and at < place + 3:
        each = lexemes[at]
        if each.text == "-" or "number_and" in each.kinds:
            at += 1
            continue
        for kind in ("num", "ord"):
            unit = each.kinds.get(kind)
            if isinstance(unit, int) and 0 < unit < 20 and each.shape != "number":
                if unit > 9 and tens not in (60, 80):
                    return None
                assert isinstance(tens, int)
                return _merge(lexemes[place : at + 1], {kind: tens + unit}), at
        return None
    return None


def _merge(lexemes: Iterable[Lexeme], kinds: dict[str, Value]) -> Lexeme:
    items = list(lexemes)
    return Lexeme(
        text=" ".join(each.text for each in items),
        start=items[0].start,
        end=items[-1].end,
        kinds=kinds,
        shape=items[0].shape,
        glued=items[0].glued,
    )
