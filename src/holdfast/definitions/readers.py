"""Reads single options, for decorators and submits alike. Each says *expected … got …*."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, fields
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from holdfast.core.duration import parse_duration
from holdfast.core.fleet import HTTP, is_internal
from holdfast.core.limits import parse_retries, parse_timeout
from holdfast.core.other_words import ADVICE, SAME
from holdfast.core.payload import check_text
from holdfast.core.priority import parse_priority
from holdfast.core.retry import RetryPolicy, parse_policy
from holdfast.core.task import Priority
from holdfast.core.trace import parse_traceparent
from holdfast.errors import InvalidOption

LONGEST_NAME = 200
LONGEST_KEY = 500
MOST_TAGS = 50

T = TypeVar("T")
W = TypeVar("W", bound=StrEnum)


def option(read: Callable[[str, object], object], default: Any = None) -> Any:
    """A field of a dataclass of options: how what was given is read, and what it is otherwise."""
    return field(default=default, metadata={"read": read})


def read_each(kind: type, given: Mapping[str, object]) -> dict[str, Any]:
    """What was given, each by the reader of its field; what has none is left to the caller."""
    known = _readers_of(kind)
    return {name: known[name](name, value) for name, value in given.items() if name in known}


@cache
def _readers_of(kind: type) -> Mapping[str, Callable[[str, object], object]]:
    return {each.name: each.metadata["read"] for each in fields(kind) if each.metadata}


def read_duration(option: str, value: object) -> float:
    return reread(option, parse_duration, value)


def read_timeout(option: str, value: object) -> float:
    """Read a time limit; "none" means no limit, as the infinite number does."""
    return reread(option, parse_timeout, value)


def read_retries(option: str, value: object) -> int:
    """Read a number of retries; "unlimited" is `core.limits.UNLIMITED`."""
    return reread(option, parse_retries, value)


def read_priority(option: str, value: object) -> Priority:
    priority = parse_priority(value)
    if priority is None:
        words = [p.value for p in Priority]
        raise InvalidOption(
            option,
            f"expected {', '.join(words)}, or a number from 0 (low) to 9 (critical), got "
            f"{value!r}.{hint(value, words)}",
        )
    return priority


def read_policy(option: str, value: object) -> RetryPolicy:
    """Read a retry policy that is data: a submit's is stored with its task."""
    if isinstance(value, RetryPolicy):
        read_duration(f"{option}.base", value.base)
        read_duration(f"{option}.cap", value.cap)
    elif callable(value):
        raise InvalidOption(
            option,
            f"expected exponential(…) or fixed(…), got {value!r}. A function cannot be stored with "
            "a task; give it to the decorator.",
        )
    elif isinstance(value, int):
        raise InvalidOption(
            option, f"says how long to wait; how often to try again is `max_retries`, got {value!r}"
        )
    return reread(option, parse_policy, value)


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


def read_word(words: type[W], option: str, value: object) -> W:
    """Read one of the words of an enum."""
    text = value.strip().lower() if isinstance(value, str) else ""
    known = [word.value for word in words]
    if text not in known:
        raise InvalidOption(
            option, f"expected {', '.join(known)}, got {value!r}.{hint(value, known)}"
        )
    return words(text)


def read_event(option: str, value: object) -> str:
    """Read the name of an event."""
    return read_name(option, value)


def read_event_key(option: str, value: object) -> str:
    """Read which one of the events of a name it is: text, or a number or UUID as text."""
    if isinstance(value, (int, UUID)) and not isinstance(value, bool):
        value = str(value)
    return read_text(option, value, LONGEST_NAME)


def read_trace(option: str, value: object) -> str:
    """Read a W3C `traceparent`, of whatever version, as version 00."""
    return reread(option, parse_traceparent, value)


def read_tags(option: str, value: object) -> tuple[str, ...]:
    """Read tags: texts, or names with their values."""
    if isinstance(value, Mapping):
        value = tags_of(option, value)
    tags = several(option, value, lambda place, tag: read_text(place, tag, LONGEST_NAME))
    if len(tags) > MOST_TAGS:
        raise InvalidOption(option, f"expected {MOST_TAGS} tags at most, got {len(tags)}")
    return tags


def tags_of(option: str, named: Mapping[Any, object]) -> list[str]:
    """`{"batch": "daily"}` as the tag `batch=daily`."""
    for n, (name, value) in enumerate(named.items()):
        if not isinstance(name, str) or type(value) not in {str, int}:
            raise InvalidOption(
                f"{option}[{n}]", f"expected a name with text or a number, got {name!r}: {value!r}"
            )
    return [f"{name}={value}" for name, value in named.items()]


def read_capabilities(option: str, value: object) -> frozenset[str]:
    return frozenset(several(option, value, _read_capability))


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


def in_our_words(
    keywords: Mapping[str, object], known: Collection[str], *, elsewhere: Mapping[str, str]
) -> dict[str, object]:
    """Options by our names: other queues' words for the same are taken, what is unknown is refused
    with how to write it. `elsewhere` are options that another place takes, and how.
    """
    given: dict[str, object] = {}
    for word, value in keywords.items():
        name = word if word in known else SAME.get(word, word)
        if name not in known:
            raise InvalidOption(word, _unknown(word, name, known, elsewhere))
        if given.get(name) is not None:
            raise InvalidOption(word, f"is another word for {name}; give one of them, not both")
        given[name] = value
    return given


def _unknown(word: str, name: str, known: Collection[str], elsewhere: Mapping[str, str]) -> str:
    if name in elsewhere:
        return f"is {elsewhere[name]}."
    if word in ADVICE:
        return f"{ADVICE[word]}."
    return f"no such option.{hint(word, known)} Expected one of: {', '.join(known)}."


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


def several(option: str, value: Any, read: Callable[[str, object], str]) -> tuple[str, ...]:
    """Read one text, or a collection of them; doubles are dropped, the order is kept."""
    many = [value] if isinstance(value, str) else value
    if not isinstance(many, Collection) or isinstance(many, Mapping):
        raise InvalidOption(option, f"expected a list of texts, got {value!r}")
    ordered = sorted(many, key=str) if isinstance(many, (set, frozenset)) else many
    return tuple(dict.fromkeys(read(f"{option}[{n}]", one) for n, one in enumerate(ordered)))
