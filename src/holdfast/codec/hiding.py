"""Keeps secrets out of texts that others write: an exception often quotes what it was about.

What is looked for are the values of a task's own secret arguments: as they are, as `repr`, JSON and
URLs escape them, bytes as text too, and each line of a text of several. Nothing shorter than
`SHORTEST`: stars for every `a` would make a text unreadable and hide nothing. A piece of a secret,
or what was computed from it, cannot be recognised.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from operator import getitem
from typing import Final
from urllib.parse import quote, quote_plus

import orjson

from holdfast.core.shown import MARK, MASK, differences, masked, taken
from holdfast.core.task import Json

SHORTEST: Final = 4
MOST_WORK: Final = 50_000_000
"""Characters times secrets that are compared at most: about a tenth of a second."""
TOO_LONG: Final = "(hidden: too long to look for the task's secrets in it)"


def without(text: str, secrets: Collection[str]) -> str:
    """The text with stars for the secrets in it. One in which to look takes too long is hidden."""
    if not secrets:
        return text
    if len(text) * len(secrets) > MOST_WORK:
        return TOO_LONG
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def marked_secrets(raw: bytes) -> frozenset[str]:
    """The secrets that a stored payload marks as such, in every form a text may have."""
    return secrets_between(raw, masked(raw)) if MARK.encode() in raw else frozenset()


def secrets_between(raw: bytes, shown: Json) -> frozenset[str]:
    """All that a stored payload has and its shown form has not."""
    try:
        plain: Json = orjson.loads(raw)
    except ValueError:
        return frozenset()
    taken(plain)
    return secrets_in(reduce(getitem, path, plain) for path in differences(plain, shown))


def secrets_in(values: Iterable[object]) -> frozenset[str]:
    """Values as texts that must not be seen, in every form."""
    texts = {text for value in values for text in _texts(value)}
    lines = {line for text in texts for line in text.splitlines()}
    forms = (form for text in texts | lines if len(text) >= SHORTEST for form in _escaped(text))
    return frozenset(forms)


def _texts(value: object) -> Iterator[str]:
    """Every text, number and byte string in a value, whatever it is wrapped in."""
    if isinstance(value, str):
        yield value
        yield from _bytes_as_texts(value)
    elif isinstance(value, (bytes, bytearray)):
        yield value.decode(errors="replace")
        yield repr(bytes(value))[2:-1]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield repr(value)
    elif isinstance(value, Mapping):
        yield from (text for inner in value.values() for text in _texts(inner))
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from (text for inner in value for text in _texts(inner))
    elif hasattr(value, "get_secret_value"):
        yield from _texts(value.get_secret_value())
    elif hasattr(value, "__dict__"):
        yield from _texts(vars(value))


def _bytes_as_texts(text: str) -> Iterator[str]:
    """What base64 stands for: bytes are stored so."""
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return
    yield from _texts(data)


def _escaped(text: str) -> set[str]:
    return {
        text,
        repr(text)[1:-1],
        ascii(text)[1:-1],
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        quote(text, safe="", errors="replace"),
        quote(text, errors="replace"),
        quote_plus(text, errors="replace"),
    }
