"""Which task a request speaks of: by words of its title, by a pronoun, by its place, or all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from holdfast.assistant.language.lexicon import Lexeme
from holdfast.assistant.language.sentences import Sentence
from holdfast.assistant.language.stream import Stream
from holdfast.assistant.language.tokens import tokens_of

Json = Any
Tasks = Sequence[Mapping[str, Json]]

ALL: Final = "*"
_SHORTEST_STEM: Final = 4
_ASKS: Final = frozenset({
    "is", "are", "was", "were", "did", "does", "has", "when", "what", "why", "which", "who", "how",
    "show", "list",
})  # fmt: skip
_CUTS: Final = ("one_word", "rename_to", "called", "rename_noun")


@dataclass(frozen=True)
class Mention:
    """The tasks that may be meant, and the lexemes that name them; `is_full` says that they are
    all the words of a title.
    """

    ids: tuple[str, ...]
    words: frozenset[int]
    named: bool
    is_full: bool = False


def find_mention(s: Stream, tasks: Tasks, focus: str | None) -> Mention:
    """The tasks that a request names best; the focus or the only one where it names none."""
    scored: list[tuple[float, str, frozenset[int], bool]] = []
    for task in tasks:
        title = str(task.get("title", ""))
        words, weight = _matched(s, title)
        if words:
            scored.append((weight, str(task["id"]), words, weight >= 0.1 + _weight_of(s, title)))
    if scored:
        best = max(each[0] for each in scored)
        held = [each for each in scored if each[0] == best]
        ids = tuple(each[1] for each in held)
        if focus in ids:
            ids = (str(focus),)
        words = frozenset[int]().union(*(each[2] for each in held))
        return Mention(ids, words, named=True, is_full=any(each[3] for each in held))
    placed = _by_place(s, tasks)
    if placed is not None:
        return placed
    known = [str(task["id"]) for task in tasks]
    if focus is not None and focus in known:
        return Mention((focus,), frozenset(), named=False)
    return Mention((known[0],) if len(known) == 1 else (), frozenset(), named=False)


def _matched(s: Stream, title: str) -> tuple[frozenset[int], float]:
    """Lexemes that are words of the title, and how much of the title they are."""
    if any(each.shape == "han" for each in s.items):
        return _matched_letters(s, title)
    wanted = _words_of(title)
    content = [each for each in wanted if not _is_generic(s, each)] or wanted
    if not content:  # a title in another script
        return frozenset(), 0.0
    joined = {one + other: {one, other} for one, other in pairwise(wanted)}
    found: set[int] = set()
    hit: set[str] = set()
    for place, item in enumerate(s.items):
        if item.shape == "quote":
            if _quotes(item.text, wanted) and not s.has(place - 1, "rename_to"):
                return frozenset({place}), float(len(wanted))
            continue
        if s.word(place, "op") == "rename" and s.has(place + 1, "det", "pronoun"):
            continue  # "call the grandma one …"
        for word in content:
            if _names(s, place, word) or _joined_text(s, place) == word:
                found.add(place)
                hit.add(word)
        if item.text in joined:  # "the backup" of "Back up the laptop"
            found.add(place)
            hit |= joined[item.text] & set(content)
    found -= {n for n in found if _is_channel(s, n) and not {n - 1, n + 1} & found}
    found = _together(s, {n for n in found if n < _new_title_at(s)})
    if len(hit) < len(content) and all(s.has(n, "op") for n in found):
        return frozenset(), 0.0  # "call it off" does not name the task "Call Grandma"
    # Words of the title that any task may have ("reminder") count only beside others.
    rest = [each for each in wanted if each not in content]
    rest += ["-"]  # "flight check-in"
    extra = {n for n, item in enumerate(s.items) if hit and item.text in rest}
    is_whole = len(hit) == len(content)
    return frozenset(_with_neighbours(found, extra)), len(hit) + 0.1 * is_whole


def _joined_text(s: Stream, place: int) -> str | None:
    """ "back up" as the "backup" of a title: one phrase, or a word with the next one."""
    text = s.text(place)
    return text.replace(" ", "").replace("-", "") if " " in text or "-" in text else None


def _with_neighbours(found: set[int], small: set[int]) -> set[int]:
    """Small words of a title belong to its name right beside the others: "pay the rent", and not
    the "the" of "move the rent to the 5th".
    """
    grown = set(found)
    while more := {n for n in small - grown if {n - 1, n + 1} & grown}:
        grown |= more
    return grown


@lru_cache(maxsize=1024)
def _words_of(title: str) -> tuple[str, ...]:
    return tuple(token.text for token in tokens_of(title) if token.kind in ("word", "number"))


def _names(s: Stream, place: int, word: str) -> bool:
    """Whether a lexeme is a word of a title; small words and phrases only letter by letter."""
    item = s.items[place]
    parts = item.text.split()
    small = ("op", "back_on", "op_now", "filler", "small", "op_mid")
    if s.has(place, "called") or (len(parts) > 1 and s.has(place, *small)):
        return False
    if s.has(place, "filler", "small", "generic"):
        return item.text == word
    if not s.is_plain(place):  # words of time are names only as they stand: "dentro", "Dentist"
        return item.text in (word, word + "s", word + "'s")
    return any(same_word(part, word) for part in parts)


def _new_title_at(s: Stream) -> int:
    """From where on the words of a renaming are its new title: "rename it to …"."""
    for at in range(len(s.items)):
        if s.text(at).endswith("बदलकर"):
            return at + 1
        if s.word(at, "op") == "rename" and not any(s.has(n, "op") for n in range(at)):
            if s.has(at, "pronoun"):
                return at + 1
            if s.has(at + 1, "pronoun") or (s.has(at + 1, "rename_to") and s.pack.name == "en"):
                return at + 1
        if s.has(at, "rename_noun") and s.has(at + 1, "rename_to"):
            return at + 1
    return len(s.items)


def _is_channel(s: Stream, at: int) -> bool:
    """ "the web inbox", which is no name of "Inbox summary" unless "summary" follows."""
    return s.has(at, "channel") and " " in s.text(at)


def _together(s: Stream, found: set[int]) -> set[int]:
    """The words that stand closest together; a title said a second time is not its name."""
    groups: list[set[int]] = []
    others = [n for n in range(len(s.items)) if n not in found]
    renames = any(s.word(n, "op") == "rename" or s.has(n, "rename_noun") for n in others)
    cuts = _CUTS if renames else tuple(each for each in _CUTS if each != "rename_to")
    for place in sorted(found):
        last = max(groups[-1]) if groups else place
        cut = any(s.has(n, *cuts) for n in range(last + 1, place))
        said = bool(groups) and any(s.text(n) == s.text(place) for n in groups[-1])
        cut = cut or said
        if groups and place - last <= 3 and not cut:
            groups[-1].add(place)
        else:
            groups.append({place})
    return max(groups, key=lambda each: sum(1 - 0.6 * s.has(n, "op") for n in each), default=set())


def _quotes(text: str, wanted: Sequence[str]) -> bool:
    """Whether a quoted text is the whole title."""
    return bool(wanted) and _words_of(text[1:-1]) == tuple(wanted)


def _is_generic(s: Stream, word: str) -> bool:
    parts = tuple(word) if s.pack.name == "zh" else (word,)
    kinds = s.pack.phrases.get(parts[0], {}).get(parts, {})
    small = ("generic", "task_noun", "det", "filler", "forward", "backward")
    return any(each in kinds for each in small)


def _weight_of(s: Stream, title: str) -> int:
    """How many words of a title tell it from others."""
    wanted = _words_of(title)
    return len([each for each in wanted if not _is_generic(s, each)] or wanted)


def _matched_letters(s: Stream, title: str) -> tuple[frozenset[int], float]:
    """Scripts without spaces: the longest stretch of the title that stands in the request."""
    letters = "".join(token.text for token in tokens_of(title))
    flat = [(n, letter) for n, item in enumerate(s.items) for letter in item.text.replace(" ", "")]
    text = "".join(letter for _, letter in flat)
    for size in range(len(letters), 1, -1):
        for start in range(len(letters) - size + 1):
            piece = letters[start : start + size]
            at = text.find(piece)
            if at >= 0 and not _is_generic(s, piece):
                return frozenset(n for n, _ in flat[at : at + size]), size
    return frozenset(), 0.0


def same_word(one: str, other: str) -> bool:
    """Whether two words are equal, or forms of one: "renewal" and "renew", "plants" and "plant"."""
    one, other = one.removesuffix("'s"), other.removesuffix("'s")
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < _SHORTEST_STEM:
        return len(short) == 3 and long == short + "s"
    common = next(
        (n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    return common >= max(_SHORTEST_STEM, len(short) - 2) and len(long) - common <= 4


def _by_place(s: Stream, tasks: Tasks) -> Mention | None:
    """ "the second one", "the last reminder"."""
    for place in range(len(s.items) - 1):
        if not s.has(place + 1, "task_noun", "one_word"):
            continue
        order = s.number(place, "ord")
        if order is None:
            order = -1 if s.has(place, "last") else None
        if order is not None:
            at = order - 1 if order > 0 else len(tasks) + order
            ids = (str(tasks[at]["id"]),) if 0 <= at < len(tasks) else ()
            return Mention(ids, frozenset({place, place + 1}), named=True)
    return None


def asks_about_tasks(sentence: Sentence, mention: Mention) -> bool:
    """ "is the gym reminder paused?", "what are my tasks?": it wants to know, and changes none."""
    s = sentence.stream
    first = next((n for n in range(len(s.items)) if not s.has(n, "chat", "comma")), 0)
    opening = s.text(first).split(" ")[0]
    if s.pack.name != "en" or opening not in _ASKS or s.has(first, "op_mid"):
        return False
    listed = any(s.text(n).endswith(("my tasks", "my reminders")) for n in range(first, 9))
    return listed or (mention.named and wonders(sentence))


def wonders(sentence: Sentence) -> bool:
    """Whether it ends as a question does, and is no polite request: "could you …?"."""
    return sentence.text.rstrip().endswith("?") and sentence.stream.word(0, "lead") != "drop"


def names_task(s: Stream, at: int, tasks: Tasks) -> bool:
    """Whether a word stands in the title of any task."""
    words = {token.text for task in tasks for token in tokens_of(str(task.get("title", "")))}
    return any(same_word(part, word) for part in s.text(at).split() for word in words)


def with_titles_apart(sentence: Sentence, tasks: Tasks) -> Sentence:
    """ "change cash up to six": the last word of a title is no part of the phrase "up to"."""
    s = sentence.stream
    pairs = {pair for task in tasks for pair in pairwise(_words_of(str(task.get("title", ""))))}
    items: list[Lexeme] = []
    for at, item in enumerate(s.items):
        first, _, rest = item.text.partition(" ")
        if rest and item.text.isascii() and (s.text(at - 1), first) in pairs:
            items += _taken_apart(s, item, first, rest)
        else:
            items.append(item)
    return (
        sentence if len(items) == len(s.items) else Sentence(sentence.text, Stream(items, s.pack))
    )


def _taken_apart(s: Stream, item: Lexeme, first: str, rest: str) -> list[Lexeme]:
    words = tuple(rest.split())
    kinds = s.pack.phrases.get(words[0], {}).get(words, {})
    alone = s.pack.phrases.get(first, {}).get((first,), {})
    middle = item.start + len(first)
    return [
        replace(item, text=first, end=middle, kinds=dict(alone)),
        replace(item, text=rest, start=middle + 1, kinds=dict(kinds), glued=False),
    ]
