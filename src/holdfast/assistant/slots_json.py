"""Slots as JSON, and back.

Reading is strict: a model's output is untrusted. An unknown key, a wrong type, a number out of
range or a combination that means nothing is an `InvalidOption` whose `option` is the path of the
field, such as `lines[0].times[1].hour`; the message is fit to be sent back to the model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from holdfast.assistant.slots import (
    Amount,
    Clock,
    Day,
    Evidence,
    Line,
    Nth,
    Point,
    Slots,
    Window,
)
from holdfast.errors import InvalidOption

Json = Any
_Value = TypeVar("_Value")
_MOST: Final = 100
_LONGEST: Final = 20_000
_RANGES: Final[Mapping[type, Mapping[str, tuple[int, int]]]] = {
    Clock: {"hour": (0, 99), "minute": (0, 99), "second": (0, 59)},
    Amount: {"number": (-100_000, 100_000)},
    Nth: {"number": (-366, 366), "weekday": (0, 9)},
    Day: {
        "number": (-100_000, 100_000),
        "weekday": (0, 9),
        "day": (-31, 31),
        "month": (1, 12),
        "year": (1, 9999),
        "shift": (-120, 1200),
        "before": (-366, 366),
        "check": (0, 6),
    },
    Line: {"weekdays": (0, 6), "monthdays": (-31, 31), "months": (1, 12), "minutes": (0, 59)},
    Slots: {
        "count": (0, 1_000_000),
        "except_weekdays": (0, 6),
        "except_months": (1, 12),
        "skip_runs": (1, 1000),
    },
    Evidence: {"start": (0, 1_000_000), "end": (0, 1_000_000)},
}
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "weekday": ("weekday",),
    "date": ("month", "day"),
    "monthday": ("day",),
    "nth": ("weekday",),
    "holiday": ("name",),
}


def to_json(value: object) -> Json:
    """The JSON form: fields that say nothing are left out."""
    if dataclasses.is_dataclass(value):
        return {
            each.name: to_json(held)
            for each in dataclasses.fields(value)
            if (held := getattr(value, each.name)) != each.default
        }
    if isinstance(value, tuple):
        return [to_json(each) for each in value]
    return value


def from_json(data: Json) -> Slots:
    """Read slots from JSON; raises `InvalidOption` that names the field."""
    return _read_object(Slots, data, "slots")


def _read_object(kind: type[_Value], data: Json, path: str) -> _Value:
    if not isinstance(data, Mapping):
        raise InvalidOption(path, f"expected an object, got {_shown(data)}")
    hints = get_type_hints(kind)
    prefix = "" if path == "slots" else f"{path}."
    for key in data:
        if key not in hints:
            raise InvalidOption(f"{prefix}{key}", f"expected one of {', '.join(hints)}")
    values: dict[str, Any] = {}
    for key, given in data.items():
        values[key] = _read(hints[key], given, f"{prefix}{key}", _RANGES.get(kind, {}).get(key))
    for each in dataclasses.fields(kind):  # type: ignore[arg-type]  # every kind here is one
        if each.default is dataclasses.MISSING and each.name not in values:
            raise InvalidOption(f"{prefix}{each.name}", "expected a value, got none")
    made = kind(**values)
    _check(made, path)
    return made


def _read(hint: Any, given: Json, path: str, limits: tuple[int, int] | None) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        if given is None and NoneType in get_args(hint):
            return None
        return _read(
            next(each for each in get_args(hint) if each is not NoneType), given, path, limits
        )
    if origin is Literal:
        if given not in get_args(hint):
            raise InvalidOption(path, f"expected one of {', '.join(map(str, get_args(hint)))}")
        return given
    if origin is tuple:
        if not isinstance(given, list | tuple) or len(given) > _MOST:
            raise InvalidOption(path, f"expected a list of at most {_MOST}, got {_shown(given)}")
        return tuple(
            _read(get_args(hint)[0], each, f"{path}[{place}]", limits)
            for place, each in enumerate(given)
        )
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return _read_object(hint, given, path)
    return _read_plain(hint, given, path, limits)


def _read_plain(hint: type, given: Json, path: str, limits: tuple[int, int] | None) -> Any:
    if hint is int:
        if type(given) is not int:
            raise InvalidOption(path, f"expected a whole number, got {_shown(given)}")
        if limits is not None and not limits[0] <= given <= limits[1]:
            raise InvalidOption(path, f"expected {limits[0]} to {limits[1]}, got {_shown(given)}")
    elif not isinstance(given, hint):
        raise InvalidOption(path, f"expected {hint.__name__}, got {_shown(given)}")
    elif isinstance(given, str) and len(given) > _LONGEST:
        raise InvalidOption(path, f"expected at most {_LONGEST} characters, got {len(given)}")
    return given


def _check(made: object, path: str) -> None:
    """What no single field can tell."""
    match made:
        case Clock(hour=None, part=None):
            raise InvalidOption(f"{path}.hour", "expected an hour or a part of the day")
        case Day(kind=kind):
            for name in _NEEDED.get(kind, ()):
                if getattr(made, name) is None:
                    raise InvalidOption(f"{path}.{name}", f"expected a value for kind {kind}")
        case Point(day=None, clock=None):
            raise InvalidOption(path, "expected a day or a clock")
        case Window(start=start, end=end) if start == end:
            raise InvalidOption(path, "expected two different times")
        case Line(every=None, sub=None, days=(), times=(), weekdays=weekdays) if weekdays:
            raise InvalidOption(f"{path}.every", "expected a unit: weekdays belong to a recurrence")
        case _:
            pass


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
