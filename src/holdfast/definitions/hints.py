"""Annotations of functions, resolved one by one."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from inspect import Parameter
from types import SimpleNamespace
from typing import Any


class Unresolved(Exception):
    """An annotation names something that is not defined (yet)."""


def hint_of(function: Callable[..., Any], annotation: Any, local_names: Mapping[str, Any]) -> Any:
    """What an annotation of this function means; `Any` where there is none."""
    if annotation is Parameter.empty:
        return Any
    holder = SimpleNamespace(__annotations__={"it": annotation})
    known = getattr(function, "__globals__", {})
    try:
        return typing.get_type_hints(holder, known, dict(local_names), True)["it"]
    except NameError as error:
        raise Unresolved(f"{error} (in annotation {annotation!r})") from None
