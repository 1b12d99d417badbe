"""From a function to a definition, with types that tell the two kinds of handler apart.

A handler whose first parameter is a `Context` is submitted without it; so its definition's `P`
leaves it out, and only a direct call still takes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from holdfast.definitions.batch import Batch
from holdfast.definitions.context import Context
from holdfast.definitions.define_batch import (
    BatchDecorator,
    BatchDefinition,
    ContextBatchDefinition,
)
from holdfast.definitions.definition import Definition
from holdfast.definitions.home import Home
from holdfast.definitions.options import TaskKeywords
from holdfast.definitions.signature import Signature
from holdfast.definitions.spec import read_spec
from holdfast.errors import InvalidOption

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


class PlainDefinition(Definition[P, R, C]):
    """A definition that is called just like its function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        return self.handler(*args, **kwargs)


class ContextDefinition(Definition[P, R, C]):
    """A definition whose function takes the context first; a direct call passes it along."""

    def __call__(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> C:
        return self.handler(context, *args, **kwargs)


class Decorator:
    """Make a function a task: `@app.task` or `@app.task(queue="mail", …)`. `@holdfast.task` makes
    it one of the default app.

    It stays callable as itself. Its name is `module.qualname` unless `name=` says otherwise; see
    `TaskKeywords` for the rest. Bad options are refused here, where they are written.
    """

    def __init__(self, home: Home, /, **options: Unpack[TaskKeywords]) -> None:
        self._home = home
        self._options = options

    # A function without annotations fits several of these; it becomes `Any`, unchecked but usable.
    @overload
    def __call__(  # type: ignore[overload-overlap] # the first that fits is the right one
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> ContextDefinition[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> ContextDefinition[P, R, R]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> PlainDefinition[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainDefinition[P, R, R]: ...
    @overload
    def __call__(self, *, batch: Batch, **options: Unpack[TaskKeywords]) -> BatchDecorator: ...
    @overload
    def __call__(self, **options: Unpack[TaskKeywords]) -> Decorator: ...

    def __call__(self, *function: Any, **options: Any) -> Any:
        if function:
            return define(function[0], self._home, {**self._options, **options})
        if options.get("batch") is not None:
            return BatchDecorator(lambda made, given: define(made, self._home, given, 3), options)
        return Decorator(self._home, **options)


def define(
    function: Any, home: Home, keywords: Mapping[str, object], depth: int = 2
) -> Definition[..., Any, Any]:
    """Make a definition and register it, for whoever is so many frames up."""
    if isinstance(function, Definition):
        raise InvalidOption("task", f"{function.name} is a task already; decorate it once")
    if not callable(function) or not hasattr(function, "__qualname__"):
        raise InvalidOption(
            "task", f"expected a function, got {function!r}; options are given by name"
        )
    signature = Signature(function, _local_names(function, depth + 1))
    spec = read_spec(function, signature, keywords)
    kind: Any = ContextDefinition if signature.wants_context else PlainDefinition
    if spec.batch is not None:
        kind = ContextBatchDefinition if signature.wants_context else BatchDefinition
    definition: Definition[..., Any, Any] = kind(function, signature, spec, home)
    home.registry.add(definition)
    return definition


def _local_names(function: Callable[..., Any], depth: int) -> Mapping[str, Any]:
    """The local variables where a nested function is decorated, so many frames up: its annotations
    may name classes there.
    """
    return dict(sys._getframe(depth).f_locals) if "<locals>" in function.__qualname__ else {}
