"""Budgets as people write them, read and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypedDict, TypeVar

from holdfast.agents.budgets import OWNER, SCHEDULE, Assumed, Budget, Limits
from holdfast.errors import InvalidOption
from holdfast.recurrence.zones import find_zone

T = TypeVar("T", Limits, Assumed)


class LimitWords(TypedDict, total=False):
    """What may be used in one period; what is left out has no limit."""

    runs: int | None
    units: float | None
    tokens: int | None
    cost: float | None


class AssumedWords(TypedDict, total=False):
    """What a run is expected to use of which nothing is known yet."""

    units: float
    tokens: int
    cost: float


def read_key(key: object) -> str:
    """`owner:…` or `schedule:…`; `InvalidOption` for anything else."""
    if isinstance(key, str):
        for prefix in (OWNER, SCHEDULE):
            if key.startswith(prefix) and key != prefix and key.isprintable() and len(key) <= 250:
                return key
    raise InvalidOption("key", f"expected 'owner:NAME' or 'schedule:NAME', got {key!r}")


def changed(
    budget: Budget,
    *,
    day: Mapping[str, object] | None = None,
    month: Mapping[str, object] | None = None,
    zone: str | None = None,
    assumed: Mapping[str, object] | None = None,
) -> Budget:
    """The budget with what is given; the rest stays."""
    changes: dict[str, Any] = {}
    if day is not None:
        changes["day"] = _read("day", Limits, day)
    if month is not None:
        changes["month"] = _read("month", Limits, month)
    if zone is not None:
        changes["zone"] = find_zone(zone, recurring=False, field="zone").name
    if assumed is not None:
        changes["assumed"] = _read("assumed", Assumed, assumed)
    return replace(budget, **changes)


def _read(option: str, kind: type[T], given: Mapping[str, object]) -> T:
    known = [each.name for each in fields(kind)]
    read: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise InvalidOption(option, f"expected {', '.join(known)}, got {name!r}")
        if value is not None:
            read[name] = _number(f"{option}.{name}", value, whole=name in ("runs", "tokens"))
    return kind(**read)


def _number(option: str, value: object, *, whole: bool) -> float:
    is_number = isinstance(value, int) or (isinstance(value, float) and not whole)
    if isinstance(value, bool) or not is_number:
        said = "a whole number" if whole else "a number"
        raise InvalidOption(option, f"expected {said} from 0, got {value!r}")
    assert isinstance(value, int | float)
    if not 0 <= value <= 1e15 or not math.isfinite(value):
        raise InvalidOption(option, f"expected 0 to 1e15, got {value!r}")
    return value if whole else float(value)
