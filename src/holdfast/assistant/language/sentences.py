"""Reads a whole request: its language, when it runs, and what is left as its purpose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from holdfast.assistant.language.attaching import attach
from holdfast.assistant.language.choosing import choose
from holdfast.assistant.language.detecting import pack_of
from holdfast.assistant.language.lexicon import lexemes_of
from holdfast.assistant.language.opening import mark_opening
from holdfast.assistant.language.stream import Phrase, Stream
from holdfast.assistant.language.tokens import tokens_of
from holdfast.assistant.slots import Slots

LONGEST: Final = 4000
"""Longer requests are refused unread."""
_EDGES: Final = " \t\r\n,;:.!?-，。、！？：；।"


@dataclass(frozen=True)
class Sentence:
    """A request under reading."""

    text: str
    stream: Stream

    @property
    def is_chat(self) -> bool:
        """Whether it is small talk from end to end, or says nothing at all."""
        items = [x for x in self.stream.items if x.shape != "mark"]
        return all("chat" in each.kinds for each in items)

    @property
    def is_remark(self) -> bool:
        """Whether it opens as thanks or a statement do: "thanks, that was really helpful".

        Only of a sentence that says nothing about time; a request in it shows by its verb.
        """
        s = self.stream
        at = 0
        thanked = False
        while at < len(s.items) and (
            s.has(at, "chat", "thanks", "comma") or s.items[at].shape == "mark"
        ):
            thanked = thanked or s.has(at, "thanks")
            at += 1
        if any(s.word(n, "lead") in ("remind", "keep") for n in range(at, len(s.items))):
            return False
        parted = s.has(at - 1, "comma") or s.items[at - 1].shape == "mark"
        named = s.has(at, "for") or at + 1 == len(s.items)
        return s.has(at, "statement") or (thanked and (named or (parted and not s.has(at, "lead"))))


def read_sentence(text: str) -> Sentence:
    """The lexemes of a request, in the language that it is written in."""
    tokens = tokens_of(text)
    pack = pack_of(tokens)
    stream = Stream(lexemes_of(text, tokens, pack), pack)
    mark_opening(stream)
    return Sentence(text, stream)


def is_filler(text: str) -> bool:
    """Whether a text is nothing but small words: "no, wait"."""
    items = [each for each in read_sentence(text).stream.items if each.shape != "mark"]
    return all("filler" in each.kinds or "comma" in each.kinds for each in items)


def is_opening(text: str) -> bool:
    """Whether a text only opens a request: "please remind me"."""
    items = [each for each in read_sentence(text).stream.items if each.shape != "mark"]
    return all("lead" in each.kinds or "tail" in each.kinds for each in items)


def slots_of(sentence: Sentence) -> Slots:
    """What a request says, as slots."""
    if sentence.is_chat:
        return Slots(trouble="small_talk")
    choice = choose(sentence.stream)
    if not choice.phrases and choice.trouble is None and sentence.is_remark:
        return Slots(trouble="small_talk")
    slots = attach(sentence.stream, choice.phrases)
    if slots.trouble is None and choice.trouble is not None:
        slots = Slots(trouble=choice.trouble)
    return replace(slots, purpose=purpose_of(sentence, choice.phrases))


def _around_shift(s: Stream, phrase: Phrase) -> range:
    """ "…, remind me 3 hours before that": what asks for it, which is no part of the purpose."""
    start, end = phrase.start, phrase.end
    while start and s.has(start - 1, "lead", "comma", "and"):
        start -= 1
    return range(start, end + 1 if s.has(end, "pronoun") or s.text(end) == "then" else end)


def purpose_of(sentence: Sentence, phrases: tuple[Phrase, ...]) -> str:
    """The words that do not say when, without the opening and the politeness around them."""
    s = sentence.stream
    taken = {n for p in phrases for n in range(p.start, p.end)}
    taken |= {n for p in phrases if p.kind == "shift_back" for n in _around_shift(s, p)}
    taken |= {n - 1 for n in taken if s.has(n - 1, "for") and n - 1 not in taken}
    at, kept = 0, -1
    while at < len(s.items) and (
        at in taken or s.has(at, "lead", "asap", "comma", "and") or s.items[at].shape == "mark"
    ):
        if s.word(at, "lead") == "keep":
            break
        if s.word(at, "lead") == "remind":
            kept = at
        at += 1
    end = len(s.items)
    while end > at and (
        end - 1 in taken or s.has(end - 1, "tail", "asap") or s.items[end - 1].shape == "mark"
    ):
        end -= 1
    if at >= end:
        return sentence.text[s.items[kept].start : s.items[kept].end] if kept >= 0 else ""
    pieces: list[str] = []
    for place in range(at, end):
        if place in taken:
            continue
        item = s.items[place]
        gap = (
            " "
            if pieces and (place - 1 in taken or sentence.text[item.start - 1].isspace())
            else ""
        )
        pieces.append(gap + sentence.text[item.start : item.end])
    return "".join(pieces).strip(_EDGES)
