"""The new title in a request to rename a task."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.sentences import Sentence
from holdfast.assistant.language.stream import Stream

_LONGEST: Final = 200
_QUOTES: Final = "\"'“”„«»‘’`「」『』"


def new_title(sentence: Sentence, named: frozenset[int]) -> str:
    """What stands in quotes, behind "to" or "should be", or behind the words that name the task."""
    s, text = sentence.stream, sentence.text
    for place in reversed(range(len(s.items))):
        item = s.items[place]
        if item.shape == "quote" and place not in named:
            return text[item.start : item.end].strip(_QUOTES + " ")[:_LONGEST]
    start = _start(s, named)
    if start is None:
        return ""
    end = len(s.items)
    last: tuple[str, ...] = ("tail", "instead", "op_now")
    if s.pack.name in ("de", "hi"):  # verbs stand last
        last = (*last, "op", "op_mid", "called")
    while end > start and (
        s.has(end - 1, *last) or s.items[end - 1].shape == "mark" or s.text(end - 1) == "um"
    ):
        end -= 1
    if end <= start:
        return ""
    return text[s.items[start].start : s.items[end - 1].end].strip(_QUOTES + " ,.;:")[:_LONGEST]


def _start(s: Stream, named: frozenset[int]) -> int | None:
    """Where the new title begins."""
    changed = next((n for n in range(len(s.items)) if s.text(n).endswith("बदलकर")), None)
    if changed is not None:  # "नाम बदलकर … कर दो"
        return changed + 1
    behind = _behind_name(s, named)
    if behind is None:
        to = next((n for n in range(1, len(s.items)) if s.has(n, "rename_to")), None)
        return None if to is None else to + 1
    at, noun = behind, None
    while at < len(s.items):
        later = any(s.word(n, "op") == "rename" for n in range(at + 1, len(s.items)))
        if s.has(at, "rename_to") and not (s.text(at) == ":" and later):
            return at + 1
        if s.word(at, "op") == "rename" and s.pack.name in ("zh", "hi", "de"):
            return s.skip(at + 1, "rename_to")
        if s.has(at, "called") or (s.has(at, "op_mid") and s.text(at).endswith(("be", "should"))):
            return s.skip(at + 1, "called")
        if s.has(at, "rename_noun") and at <= behind + 2:
            noun = at + 1
        at += 1
    return behind if noun is None else noun


def _behind_name(s: Stream, named: frozenset[int]) -> int | None:
    """The place behind the words for the task: its name, a pronoun, or "the title"."""
    behind = max(named, default=-1)
    for kind in ("pronoun", "rename_noun"):
        if behind < 0:
            behind = next((n for n in range(len(s.items)) if s.has(n, kind)), -1)
    if behind < 0:
        return None
    return s.skip(behind + 1, "one_word", "task_noun")
