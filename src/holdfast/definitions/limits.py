"""Limits, rates, fair shares and breakers, as people write them.

On a definition a key is a template over its arguments, or a function of them, as with `lock`. On a
queue (`app.queue`) it is a template over the arguments' JSON values, whatever the task, and
`{owner}`; or a function of one mapping of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, TypedDict

from holdfast.core.duration import Duration
from holdfast.definitions.keys import KeyMaker
from holdfast.definitions.readers import read_duration, read_key, read_name
from holdfast.errors import InvalidOption

MOST: Final = 1_000_000
WINDOW: Final = 100


def _number(what: str, value: object, least: int = 1) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST:
        return value
    raise InvalidOption(what, f"expected a whole number from {least} to {MOST:,}, got {value!r}")


def _time(what: str, value: object) -> float:
    seconds = read_duration(what, value)
    if seconds < 0.001:
        raise InvalidOption(what, f"expected more than 0 seconds, got {value!r}")
    return seconds


def _own_name(what: str, value: object) -> None:
    if value is not None and (set(":[") & set(read_name(what, value))):
        raise InvalidOption(what, f"expected a name without ':' and '[', got {value!r}")


@dataclass(frozen=True, slots=True)
class Limit:
    """So many at a time, over the whole fleet: `Limit(5)`, or for each key `Limit(5, "{tenant}")`.
    Those with the same `name` are one, whoever has them.
    """

    n: int
    key: KeyMaker | None = None
    _: KW_ONLY
    name: str | None = None

    def __post_init__(self) -> None:
        _number("Limit.n", self.n)
        _own_name("Limit.name", self.name)


@dataclass(frozen=True, slots=True)
class Rate:
    """So many starts in any window of a period: `Rate(100, per="1m")`, or for each key. Those with
    the same `name` are one, whoever has them.
    """

    n: int
    per: Duration = "1m"
    key: KeyMaker | None = None
    _: KW_ONLY
    name: str | None = None

    def __post_init__(self) -> None:
        _number("Rate.n", self.n)
        _time("Rate.per", self.per)
        _own_name("Rate.name", self.name)


@dataclass(frozen=True, slots=True)
class Fair:
    """Fair shares: of each key no more than `window` tasks are in line or running, and `weights`
    times as many of those keys. The others stand aside, so that one with a million tasks does not
    keep another's first one waiting.
    """

    by: KeyMaker
    weights: Mapping[str, float] = field(default_factory=dict)
    window: int = WINDOW
    _: KW_ONLY
    name: str | None = None

    def __post_init__(self) -> None:
        _number("Fair.window", self.window)
        _own_name("Fair.name", self.name)
        weights: object = self.weights
        if not isinstance(weights, Mapping):
            raise InvalidOption(
                "Fair.weights", f"expected keys with numbers, {{'gold': 3}}, got {weights!r}"
            )
        for key, weight in weights.items():
            read_key("Fair.weights", key)
            if not isinstance(weight, (int, float)) or not 0 < weight <= 1000:
                raise InvalidOption(
                    f"Fair.weights[{key!r}]",
                    f"expected a number, more than 0 and at most 1000, got {weight!r}",
                )


@dataclass(frozen=True, slots=True)
class Breaker:
    """Lets nobody run while too much fails: opens once at least `at_least` attempts ended within
    `window` and a share of `failures` of them failed; after `cool_down` one task may try. Those
    with the same `name` are one, whoever has them.
    """

    failures: float = 0.5
    window: Duration = "1m"
    at_least: int = 10
    cool_down: Duration = "30s"
    key: KeyMaker | None = None
    _: KW_ONLY
    name: str | None = None

    def __post_init__(self) -> None:
        share: object = self.failures
        if share is False or not isinstance(share, (int, float)) or not 0 < share <= 1:
            raise InvalidOption(
                "Breaker.failures", f"expected a share, more than 0 and at most 1, got {share!r}"
            )
        _number("Breaker.at_least", self.at_least)
        _time("Breaker.window", self.window)
        _time("Breaker.cool_down", self.cool_down)
        _own_name("Breaker.name", self.name)


class LimitKeywords(TypedDict, total=False):
    """What bounds how tasks run, of a definition or of a queue."""

    concurrency: int | Limit | Sequence[int | Limit] | None
    rate: Rate | Sequence[Rate] | None
    fair_by: KeyMaker | Fair | None
    breaker: Breaker | Sequence[Breaker] | None
