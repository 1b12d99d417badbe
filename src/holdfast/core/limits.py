"""How often a task is tried again and how long an attempt may take: how people write it, and what
holds for a priority where nobody wrote anything.

Readers raise `ValueError` with "expected …, got …"; the caller adds which option or setting it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from holdfast.core.duration import parse_duration
from holdfast.core.priority import parse_priority
from holdfast.core.task import Priority

T = TypeVar("T")

UNLIMITED: Final = 2**31 - 1
"""`max_retries` of a task that is tried until it succeeds: a number that every store can hold, and
that no task lives to reach. People and APIs are shown `unlimited` or null instead.
"""
MOST_RETRIES: Final = 1_000_000
RETRIES: Final[Mapping[Priority, int]] = {
    Priority.CRITICAL: 5,
    Priority.HIGH: 5,
    Priority.NORMAL: 3,
    Priority.LOW: 2,
}
TIMEOUTS: Final[Mapping[Priority, float]] = {
    Priority.CRITICAL: 300.0,
    Priority.HIGH: 300.0,
    Priority.NORMAL: 600.0,
    Priority.LOW: 900.0,
}


def parse_retries(value: object) -> int:
    """Read a number of retries; "unlimited" is `UNLIMITED`."""
    text = value.strip().lower() if isinstance(value, str) else None
    if text == "unlimited" or value == UNLIMITED:
        return UNLIMITED
    number = int(text) if text is not None and text.isdecimal() else value
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= MOST_RETRIES:
        return number
    raise ValueError(
        f'expected a whole number from 0 to {MOST_RETRIES:,}, or "unlimited", got {value!r}'
    )


def shown_retries(max_retries: int) -> int | None:
    """`max_retries` for people and APIs: None if they are unlimited."""
    return None if max_retries == UNLIMITED else max_retries


def parse_timeout(value: object) -> float:
    """Read a time limit in seconds; "none" means no limit, and is infinite."""
    if value == math.inf or (isinstance(value, str) and value.strip().lower() in {"none", "inf"}):
        return math.inf
    seconds = parse_duration(value)
    if seconds == 0:
        raise ValueError(f'expected more than 0 seconds, got {value!r}; "none" means no limit')
    return seconds


def by_priority(read: Callable[[object], T]) -> Callable[[object], T | Mapping[str, T]]:
    """Read one value for every priority, or several: `{"high": 8}`, or as text `high=8,low=0`."""

    def read_some(value: object) -> T | Mapping[str, T]:
        if isinstance(value, str) and "=" in value:
            value = {word: each for word, _, each in (p.partition("=") for p in value.split(","))}
        if not isinstance(value, Mapping):
            return read(value)
        return {_priority(word): read(each) for word, each in value.items()}

    return read_some


def chosen(
    given: T | Mapping[str, T] | None, priority: Priority, defaults: Mapping[Priority, T]
) -> T:
    """The value that holds for a priority, of what `by_priority` read."""
    if isinstance(given, Mapping):
        return given.get(priority, defaults[priority])
    return defaults[priority] if given is None else given


def _priority(word: object) -> str:
    priority = parse_priority(word)
    if priority is None:
        raise ValueError(f"expected {', '.join(Priority)} before each value, got {word!r}")
    return priority.value
