"""`batch=`: a handler that takes many tasks at once, each submitted by itself."""

from __future__ import annotations

import collections.abc
import types
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

from holdfast.core.duration import Duration
from holdfast.definitions.readers import read_duration
from holdfast.errors import InvalidOption

MOST: Final = 2000
"""Members of a batch: a worker claims no more at a time."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Hand up to `max` tasks to the handler as a list, once the first has waited for `within`.

    The handler has one parameter, a list; each submit gives one item of it. It returns nothing, or
    a list with the result or the exception of each item; what it raises fails all of them.
    """

    max: int = 100
    within: Duration = "1s"


class BatchRule(NamedTuple):
    """What a definition says, read. `within` is in seconds."""

    max: int
    within: float


def read_batch(option: str, value: object) -> BatchRule:
    """Read a decorator's `batch`."""
    if not isinstance(value, Batch):
        raise InvalidOption(option, f'expected Batch(max=100, within="1s"), got {value!r}')
    most: object = value.max
    if type(most) is not int or not 1 <= most <= MOST:
        raise InvalidOption(f"{option}.max", f"expected 1 to {MOST:,}, got {most!r}")
    return BatchRule(most, read_duration(f"{option}.within", value.within))


def item_of(hint: Any) -> Any:
    """The type of one item of a parameter that is a list; `Any` if that is not said.
    `InvalidOption` if it is no list.
    """
    if hint is Any or hint is list:
        return Any
    origin = get_origin(hint)
    if origin is list or origin in _LISTS:
        return get_args(hint)[0]
    raise InvalidOption(
        "batch", f"the handler takes many items at once: annotate it with a list, got {hint!r}"
    )


def result_of(hint: Any) -> Any:
    """The type of one member's result, from what the handler returns for all of them."""
    kinds = [kind for kind in _alternatives(hint) if kind not in (None, type(None))]
    if not kinds:
        return None if hint is not Any else Any
    found: list[Any] = []
    for kind in kinds:
        if get_origin(kind) is not list and get_origin(kind) not in _LISTS:
            return Any
        found += [one for one in _alternatives(get_args(kind)[0]) if not _is_error(one)]
    return Union[tuple(found)] if found else Any  # noqa: UP007 - made of values


_LISTS: Final = (
    collections.abc.Sequence,
    collections.abc.Collection,
    collections.abc.Iterable,
    collections.abc.MutableSequence,
)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        return get_args(hint)
    return (hint,)


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)
