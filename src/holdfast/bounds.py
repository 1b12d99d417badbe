"""Reads what a token is to be bound to, in the words of people."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypedDict, Unpack

from holdfast.core.task import Priority
from holdfast.core.token import Bounds, RateLimit
from holdfast.definitions import readers
from holdfast.errors import InvalidOption

MOST_REQUESTS = 100_000
"""In one period: each is remembered for as long as that."""
LONGEST_PERIOD = 9999 * 3600


class BoundWords(TypedDict, total=False):
    """What a token may be bound to. `names` are those of tasks; `rate` is `"100/1m"`."""

    owner: str | None
    queues: str | Collection[str] | None
    names: str | Collection[str] | None
    max_priority: str | Priority | None
    rate: str | RateLimit | None


def read_bounds(**words: Unpack[BoundWords]) -> Bounds:
    """Read the bounds of a token: `read_bounds(owner="anna", queues=["mail"], rate="100/1m")`."""
    readers.refuse_unknown(words, BoundWords.__annotations__)
    given: dict[str, Any] = {name: value for name, value in words.items() if value is not None}
    return Bounds(**{name: _READERS[name](name, value) for name, value in given.items()})


def read_rate(option: str, value: object) -> RateLimit:
    """Read `"100/1m"`: so many requests in so long; `"100/m"` is the same."""
    if isinstance(value, RateLimit):
        value = str(value)
    number, _, period = value.partition("/") if isinstance(value, str) else ("", "", "")
    period = period.strip()
    if not number.strip().isdecimal() or not period:
        raise InvalidOption(option, f"expected requests per time such as '100/1m', got {value!r}")
    requests = int(number)
    seconds = readers.read_duration(option, f"1{period}" if period[0].isalpha() else period)
    whole = 1 <= seconds <= LONGEST_PERIOD and seconds == int(seconds)
    if not (whole and 1 <= requests <= MOST_REQUESTS):
        raise InvalidOption(
            option,
            f"expected 1 to {MOST_REQUESTS:,} requests in whole seconds, 9999 h at most, "
            f"got {value!r}",
        )
    return RateLimit(requests, int(seconds))


def _names(option: str, value: object) -> frozenset[str]:
    names = frozenset(readers.several(option, value, readers.read_name))
    if not names:
        raise InvalidOption(option, "expected at least one name, got none")
    return names


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "owner": readers.read_key,
    "queues": _names,
    "names": _names,
    "max_priority": readers.read_priority,
    "rate": read_rate,
}
