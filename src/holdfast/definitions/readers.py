"""Reads single options, for decorators and submits alike. Each says *expected … got …*."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from typing import Any, TypeVar

from holdfast.core.duration import parse_duration
from holdfast.core.fleet import HTTP, is_internal
from holdfast.core.payload import check_text
from holdfast.core.priority import parse_priority
from holdfast.core.retry import RetryPolicy
from holdfast.core.task import Priority
from holdfast.errors import InvalidOption

LONGEST_NAME = 200
LONGEST_KEY = 500
MOST_RETRIES = 1_000_000
MOST_TAGS = 50

T = TypeVar("T")


def read_duration(option: str, value: object) -> float:
    return reread(option, parse_duration, value)


def read_timeout(option: str, value: object) -> float:
    """Read a time limit; `inf` means none."""
    if value in (math.inf, "inf"):
        return math.inf
    seconds = read_duration(option, value)
    if seconds == 0:
        raise InvalidOption(option, "expected more than 0 seconds, got 0; `inf` means no limit")
    return seconds


def read_retries(option: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_RETRIES:
        return value
    raise InvalidOption(
        option, f"expected a whole number from 0 to {MOST_RETRIES:,}, got {value!r}"
    )


def read_priority(option: str, value: object) -> Priority:
    priority = parse_priority(value) if isinstance(value, str) else None
    if priority is None:
        words = [p.value for p in Priority]
        raise InvalidOption(
            option, f"expected {', '.join(words)}, got {value!r}.{hint(value, words)}"
        )
    return priority


def read_policy(option: str, value: object) -> RetryPolicy:
    """Read a submit's own retry policy. It is stored with the task, so it must be data."""
    if isinstance(value, RetryPolicy):
        read_duration(f"{option}.base", value.base)
        read_duration(f"{option}.cap", value.cap)
        return value
    advice = " A function cannot be stored with a task; give it to the decorator."
    raise InvalidOption(
        option,
        f"expected exponential(…) or fixed(…), got {value!r}.{advice * callable(value)}",
    )


def read_name(option: str, value: object) -> str:
    """Read a name that people type: of a task, a queue, a capability."""
    text = read_text(option, value, LONGEST_NAME)
    if any(c in ",*" or c.isspace() or not c.isprintable() for c in text):
        raise InvalidOption(
            option, f"expected a name without blanks, commas and stars, got {value!r}"
        )
    return text


def read_key(option: str, value: object) -> str:
    return read_text(option, value, LONGEST_KEY)


def read_tags(option: str, value: object) -> tuple[str, ...]:
    tags = _several(option, value, lambda place, tag: read_text(place, tag, LONGEST_NAME))
    if len(tags) > MOST_TAGS:
        raise InvalidOption(option, f"expected {MOST_TAGS} tags at most, got {len(tags)}")
    return tags


def read_capabilities(option: str, value: object) -> frozenset[str]:
    return frozenset(_several(option, value, _read_capability))


def _read_capability(option: str, value: object) -> str:
    name = read_name(option, value)
    if is_internal(name) and name != HTTP:
        raise InvalidOption(option, f"{name!r} begins like those that Holdfast gives; use another")
    return name


def read_text(option: str, value: object, longest: int) -> str:
    """Read non-empty text that every store can hold."""
    if not isinstance(value, str) or not value:
        raise InvalidOption(option, f"expected text that is not empty, got {value!r}")
    if len(value) > longest:
        raise InvalidOption(option, f"expected {longest} characters at most, got {len(value)}")
    check_text(value, option)
    return str(value)


def reread(option: str, read: Callable[[object], T], value: object) -> T:
    """Read with a function of `core`, which does not know the option's name."""
    try:
        return read(value)
    except ValueError as error:
        raise InvalidOption(option, str(error)) from None


def refuse_unknown(names: Iterable[str], known: Collection[str]) -> None:
    """Refuse the first name that is no option."""
    for name in names:
        if name not in known:
            raise InvalidOption(
                name, f"no such option.{hint(name, known)} Expected one of: {', '.join(known)}."
            )


def hint(word: object, words: Iterable[str]) -> str:
    """` Did you mean …?`, where something is close."""
    close = get_close_matches(str(word), list(words), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _several(option: str, value: Any, read: Callable[[str, object], str]) -> tuple[str, ...]:
    """Read one text, or a collection of them; doubles are dropped, the order is kept."""
    many = [value] if isinstance(value, str) else value
    if not isinstance(many, Collection):
        raise InvalidOption(option, f"expected a list of texts, got {value!r}")
    ordered = sorted(many, key=str) if isinstance(many, (set, frozenset)) else many
    return tuple(dict.fromkeys(read(f"{option}[{n}]", one) for n, one in enumerate(ordered)))
