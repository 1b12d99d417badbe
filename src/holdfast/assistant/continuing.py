"""What an answer to a question means: the request that it completes.

The words of both are joined and read anew, so that an answer is understood by the same grammar as
a request. Which way of joining them is right shows in what comes out: the first that is no refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.assistant.conversation import Open
from holdfast.assistant.language.channel_phrases import answered_channels
from holdfast.assistant.language.sentences import read_sentence, slots_of
from holdfast.assistant.slots import Slots
from holdfast.assistant.zone_names import find_zone_name
from holdfast.core.task import Json

Read = Callable[[str, str | None], Mapping[str, Json]]
"""Reads a text, with this task in focus, as `parse` does."""
_DEFAULT = "no time was given"


class Continued(NamedTuple):
    """The text to plan, the task that it is about if the answer named one, and what the next
    message goes on with if this one is no answer.
    """

    text: str
    focus: str | None = None
    open_text: str | None = None


def continued(pending: Open, answer: str, focus: str | None, read: Read) -> Continued:
    """The request that a message goes on with, or the message itself if it is one of its own."""
    alone = read(answer, focus)
    if is_whole(read(answer, None)) or _steers(alone):
        return Continued(answer)
    if "target" in pending.fields:
        named = read(f"pause {answer}", None)
        if named.get("kind") == "update" and named["target"] != "*":
            return Continued(pending.text, named["target"])
    if "timezone" in pending.fields:
        placed = _in_zone(pending.text, answer, read)
        if placed is not None:
            return Continued(placed)
    for text in _joined(pending.text, answer):
        found = read(text, None)
        if found.get("kind") != "refuse" and (found.get("purpose") or "op" in found):
            return Continued(text)
    if alone.get("kind") == "update":
        return Continued(answer)
    whole = f"{pending.text} {answer}"
    is_nearer = set(read(whole, None).get("fields") or ()) != set(pending.fields)
    return Continued(whole, open_text=whole if is_nearer else pending.text)


def _in_zone(text: str, answer: str, read: Read) -> str | None:
    """The request with the place that an answer names instead of the one that nobody knows."""
    place = answer.strip(" .,!?")
    zone = find_zone_name(place)
    words = text.split(" ")
    for at in range(len(words) if zone is not None else 0):
        whole = " ".join([*words[:at], place, *words[at + 1 :]])
        if read(whole, None).get("tz") == zone:
            return whole
    return None


def _steers(result: Mapping[str, Json]) -> bool:
    """ "pause it", "call it X": a change that no question asks for, unlike a time."""
    return result.get("kind") == "update" and result["op"] != "reschedule"


def with_other_channels(result: Mapping[str, Json], answer: str) -> Mapping[str, Json] | None:
    """A plan whose channels cannot be, with those that the answer names; the usual ones if it only
    gives some up. None if the answer is about something else.
    """
    held = [str(each) for each in result.get("delivery") or ()]
    found = answered_channels(read_sentence(answer).stream, held)
    if found is None or (not found and result.get("kind") == "update"):
        return None
    return {**result, "delivery": found}


def is_whole(result: Mapping[str, Json]) -> bool:
    """Whether a request says by itself what to do and when, or what to change."""
    if result.get("kind") == "update":
        return True
    if result.get("kind") not in ("once", "recurring") or not result.get("purpose"):
        return False
    return not any(said.startswith(_DEFAULT) for said in result.get("assumptions") or ())


def _joined(first: str, answer: str) -> list[str]:
    """The ways to put both together, the likeliest first. An answer takes the place of what it
    answers ("tomorrow" that of "yesterday"), but makes a period more exact: "on the 5th" does not
    replace "next month".
    """
    before, said = slots_of(read_sentence(first)), slots_of(read_sentence(answer))
    if said.trouble == "small_talk":
        return []
    replaced = f"{answer} {_without(first, before, said)}"
    added = [f"{first} {answer}", f"{answer} {first}"]
    found = [*added, replaced] if _is_vague(before) else [replaced, *added]
    if before.purpose and (said.lines or said.offset):
        found.append(f"{answer}, {before.purpose}")  # its time instead of what was wrong
    return found


def _without(text: str, before: Slots, said: Slots) -> str:
    """The text without what an answer says anew."""
    anew = {each.slot for each in said.evidence}
    for each in sorted(before.evidence, key=lambda one: -one.start):
        if each.slot in anew:
            text = text[: each.start] + text[each.end :]
    return text.strip(" ,")


def _is_vague(slots: Slots) -> bool:
    return any(day.kind == "unclear" for line in slots.lines for day in line.days)
