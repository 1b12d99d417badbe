"""The opening of a request for a new task: "set a daily reminder for 9pm to …".

Its words say that a task is wanted. Read one by one they would look like a change ("set"), and
would stand between the time that they hold ("daily") and the rest of it.
"""

from __future__ import annotations

from holdfast.assistant.language.stream import Stream

_NOUNS = ("task_noun", "new_noun")
_ADJECTIVES = ("freq", "adjective", "generic", "part", "weekday", "daygroup")


def mark_opening(s: Stream) -> None:
    """Make openings of the words up to "reminder", except those that say how often."""
    start = at = _behind_leads(s)
    setting = s.has(at, "set_lead")
    if setting:
        at = s.skip(at + 1, "set_helper")
    article = s.has(at, "one", "another")
    if article:
        at += 1
    noun = at
    while noun < at + 4 and not s.has(noun, *_NOUNS) and s.has(noun, *_ADJECTIVES):
        noun += 1
    if not s.has(noun, *_NOUNS) or not (article or (noun > at and _is_bare(s, setting=setting))):
        return
    for place in range(start, noun + 1):
        kinds = s.items[place].kinds
        if not s.has(place, "freq", "part", "weekday", "daygroup"):
            s.items[place].kinds = {"lead": "drop", "glue": 1}
        elif "lead" not in kinds:
            s.items[place].kinds = {**kinds, "owned": 1}
    s.items[noun].kinds = {"lead": "remind", "glue": 1}
    if s.has(noun + 1, "for"):
        kinds = {
            kind: value for kind, value in s.items[noun + 1].kinds.items() if kind != "weak_prep"
        }
        s.items[noun + 1].kinds = {**kinds, "glue": 1, "lead": "drop"}


def _behind_leads(s: Stream) -> int:
    at = 0
    while at < len(s.items) and (
        (s.has(at, "lead") and not s.has(at, "set_lead", "task_noun"))
        or s.items[at].shape == "mark"
    ):
        at += 1
    return at


def _is_bare(s: Stream, *, setting: bool) -> bool:
    """ "daily reminder 9pm: floss" asks for a task unless it says that one is to change."""
    return not setting and not any(s.has(n, "op", "op_mid", "instead") for n in range(len(s.items)))
