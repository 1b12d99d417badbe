"""Reads what a model answered: into slots that the user's own text supports, or a list of problems.

An answer is a claim. It must have the shape of `schema` and nothing beside it, every slot must rest
on a quote that stands in the user's latest text, and what is words (the purpose, a task's name, a
place) must be the user's words. The problems are fit to be sent back to the model; they are for
nobody else, as they may repeat what it said.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from holdfast.assistant.llm.schema import CATEGORIES, LONGEST_QUOTE, MOST_QUOTES, slot_names
from holdfast.assistant.llm.titles import fit_title
from holdfast.assistant.slots import Day, Evidence, Slots
from holdfast.assistant.slots_json import from_json
from holdfast.errors import InvalidOption

_WITHOUT_QUOTE: Final = frozenset({"purpose", "trouble", "channel_change", "skip_runs"})
"""Slots that need none: words that are checked as such, a refusal, and parts of an update."""
_MEMBERS: Final = ("evidence", "slots", "title", "category")
_BLOCK: Final = re.compile(r"\A\s*```(?:json)?\s*(.*?)\s*```\s*\Z", re.DOTALL)
_WORDS: Final = re.compile(r"\w+(?:['’]\w+)*")
_CHANNEL_WORDS: Final[Mapping[str, re.Pattern[str]]] = {
    "EMAIL": re.compile(r"mail|correo|courriel|मेल|邮"),
    "WEB": re.compile(r"web|inbox|browser|dashboard|site|posteingang|bandeja|वेब|网"),
    "MOBILE": re.compile(
        r"mobile|phone|push|notif|handy|telefon|móvil|teléfono|téléphone|portable|फ़?ोन|मोबाइल|手机"
    ),
}


class Unusable(Exception):
    """The answer cannot be used; `problems` say why, one line each."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model read out of a request, checked against it."""

    slots: Slots
    title: str | None
    category: str | None


def read_answer(said: str, text: str) -> Answer:
    """The answer to a request with this text; `Unusable` if it is not to be believed."""
    members = _members(said)
    slots = _slots(members.get("slots"))
    spans = _spans(members.get("evidence"), text)
    problems = [*_unsupported(slots, spans), *_strange_words(slots, text), *_strange(slots, text)]
    if problems:
        raise Unusable(*problems)
    category = members.get("category")
    return Answer(
        slots=replace(slots, evidence=tuple(spans)),
        title=fit_title(members.get("title"), text),
        category=category if category in CATEGORIES else None,
    )


def _members(said: str) -> Mapping[str, Any]:
    block = _BLOCK.match(said)
    try:
        members = orjson.loads(block[1] if block else said)
    except ValueError:
        raise Unusable("expected one JSON object and nothing else") from None
    if not isinstance(members, dict):
        raise Unusable("expected one JSON object")
    for name in members:
        if name not in _MEMBERS:
            raise Unusable(f"{name[:40]}: expected one of {', '.join(_MEMBERS)}")
    return members


def _slots(given: object) -> Slots:
    if isinstance(given, dict) and "evidence" in given:
        raise Unusable("slots.evidence: expected quotes in `evidence`, beside the slots")
    try:
        return from_json(_said(given))
    except InvalidOption as error:
        raise Unusable(str(error)) from None


def _said(given: Any) -> Any:
    """Without the nulls and empty lists that a strict schema makes a model write."""
    if isinstance(given, dict):
        return {k: _said(v) for k, v in given.items() if v is not None and v not in ([], {})}
    return [_said(each) for each in given] if isinstance(given, list) else given


def _spans(given: object, text: str) -> list[Evidence]:
    if not isinstance(given, list) or len(given) > MOST_QUOTES:
        raise Unusable(f"evidence: expected a list of at most {MOST_QUOTES} quotes")
    spans, problems = [], []
    for place, each in enumerate(given):
        slot, quote = (each.get("slot"), each.get("quote")) if isinstance(each, dict) else ("", "")
        if slot not in slot_names() or not isinstance(quote, str) or len(quote) > LONGEST_QUOTE:
            problems.append(f"evidence[{place}]: expected the name of a slot and a quote")
        elif (start := _find(quote, text)) is None:
            problems.append(f"evidence[{place}].quote: these characters are not in the request")
        else:
            spans.append(Evidence(slot=slot, start=start, end=start + len(quote)))
    if problems:
        raise Unusable(*problems)
    return spans


def _find(quote: str, text: str) -> int | None:
    """Where the quote stands; letter case aside. A quote of blanks and signs says nothing."""
    if not any(char.isalnum() for char in quote):
        return None
    for there, searched in ((text, quote), (text.lower(), quote.lower())):
        place = there.find(searched)
        if place >= 0 and len(there) == len(text):
            return place
    return None


def _unsupported(slots: Slots, spans: Iterable[Evidence]) -> Iterator[str]:
    """Slots that are filled although no quote speaks for them."""
    quoted = {span.slot for span in spans}
    for each in dataclasses.fields(slots):
        filled = getattr(slots, each.name) != each.default
        if filled and each.name not in quoted | _WITHOUT_QUOTE | {"evidence"}:
            yield f"{each.name}: expected evidence, a quote of the request that says it"


def _strange_words(slots: Slots, text: str) -> Iterator[str]:
    """What must be the user's words and is not."""
    if not _follows(_words(slots.purpose), iter(_words(text))):
        yield "purpose: expected words of the request, in their order"
    for name in ("target", "title"):
        value = getattr(slots, name)
        if value is not None and _find(value, text) is None:
            yield f"{name}: expected words of the request"
    if slots.zone not in (None, "user") and _find(str(slots.zone), text) is None:
        yield "zone: expected the place as the request names it, or null"


def _strange(slots: Slots, text: str) -> Iterator[str]:
    """Values for which the request has no words at all."""
    numbers = set(re.findall(r"\d+", text))
    for day in _days(slots):
        if day.year is not None and not numbers & {str(day.year), f"{day.year % 100:02}"}:
            yield "year: expected null, as the request names no such year"
    folded = text.casefold()
    for channel in slots.channels:
        if not _CHANNEL_WORDS[channel].search(folded):
            yield f"channels: expected none, as the request does not ask for {channel}"


def _days(value: object) -> Iterator[Day]:
    if isinstance(value, Day):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _days(each)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _days(getattr(value, field.name))


def _words(text: str) -> list[str]:
    return _WORDS.findall(unicodedata.normalize("NFC", text).casefold())


def _follows(words: list[str], among: Iterator[str]) -> bool:
    """Whether the words appear among the others, in the same order.

    Scripts without blanks make one word of a sentence, so a word may also be a part of one.
    """
    return all(any(word in other for other in among) for word in words)
