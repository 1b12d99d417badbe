"""Words for where results go: which channels a change of a task wants, and which it gives up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.assistant.language.stream import Stream

CHANNELS: Final = ("EMAIL", "WEB", "MOBILE")
_NEVER: Final = ("never mind", "forget", "drop", "skip", "nevermind", "forget about", "no")


_SMALL: Final = (
    "filler", "small", "lead", "tail", "comma", "and", "only", "chat", "generic", "det",
    "add_channel", "remove_channel", "instead", "pronoun", "via", "op", "glue", "of", "on", "in",
    "enough", "negative", "not",
)  # fmt: skip


def answered_channels(s: Stream, held: Sequence[str]) -> list[str] | None:
    """The channels that an answer wants, whose question was about those of a request; None if it
    is about something else.
    """
    places = [n for n, item in enumerate(s.items) if item.shape != "mark"]
    inbox = [n for n in places if s.text(n).endswith("inbox")]
    channels = [n for n in places if s.has(n, "channel") or n in inbox]
    if not channels or not all(n in channels or s.has(n, *_SMALL) for n in places):
        return None
    against = any(s.has(n, "remove_channel", "negative") or s.text(n) in _NEVER for n in places)
    named = ["WEB" if n in inbox else s.word(n, "channel") or "" for n in channels]
    if against and set(named) <= set(held):
        return [each for each in held if each not in named]
    return (
        changed_channels(s, places, held, dropping=False) if against else list(dict.fromkeys(named))
    )


def changed_channels(
    s: Stream, places: Iterable[int], held: Sequence[str], *, dropping: bool
) -> list[str]:
    """The channels after a change; `dropping` says that its verb takes some away."""
    wanted: list[str] = []
    dropped: list[str] = []
    everywhere = adding = only = False
    against = dropping
    for at in places:
        everywhere = everywhere or s.has(at, "all_channels")
        adding = adding or s.has(at, "add_channel")
        only = only or s.has(at, "only")
        if s.has(at, "remove_channel"):
            against = True
        elif against and s.has(at, "comma", "only", "instead") and not dropping:
            against = False
        channel = s.word(at, "channel")
        if channel is not None:
            (dropped if against else wanted).append(channel)
    if everywhere:
        found = list(CHANNELS)
    elif (adding and not only) or (dropped and not wanted):
        found = [*held, *wanted]
    else:
        found = wanted
    return [each for each in dict.fromkeys(found) if each not in dropped]
