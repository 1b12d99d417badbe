"""A task that Holdfast brings along: its name, who may run it, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """`capabilities` are those that the tasks of this name may require, and that a worker which
    runs it therefore has. `options` are those of a definition.
    """

    name: str
    queue: str
    capabilities: frozenset[str]
    handler: Callable[..., Coroutine[Any, Any, str]]
    options: Mapping[str, object] = field(default_factory=dict)
