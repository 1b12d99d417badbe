"""`@app.task(batch=Batch(…))`, with types: each submit takes one item of the handler's list."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from holdfast.definitions.batch_context import BatchContext
from holdfast.definitions.definition import Definition

T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C")
Results = Sequence[R | BaseException]
"""What a handler may return: for each item its result, or an exception."""


class BatchDefinition(Definition[[T], R, C], Generic[T, R, C]):
    """A definition whose function takes a list of what is submitted one by one."""

    def __call__(self, items: list[T], /) -> C:
        return self.handler(items)


class ContextBatchDefinition(Definition[[T], R, C], Generic[T, R, C]):
    """The same for a function that takes the context first."""

    def __call__(self, context: BatchContext, items: list[T], /) -> C:
        return self.handler(context, items)


class BatchDecorator:
    """Make a function over a list a task that takes one item: `@app.task(batch=Batch(…))`."""

    def __init__(
        self, define: Callable[[Any, Mapping[str, Any]], Any], options: Mapping[str, Any]
    ) -> None:
        self._define = define
        self._options = options

    @overload
    def __call__(
        self, function: Callable[[BatchContext, list[T]], Coroutine[Any, Any, None]], /
    ) -> ContextBatchDefinition[T, None, Coroutine[Any, Any, None]]: ...
    @overload
    def __call__(
        self, function: Callable[[BatchContext, list[T]], Coroutine[Any, Any, Results[R]]], /
    ) -> ContextBatchDefinition[T, R, Coroutine[Any, Any, Results[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[[BatchContext, list[T]], None], /
    ) -> ContextBatchDefinition[T, None, None]: ...
    @overload
    def __call__(
        self, function: Callable[[BatchContext, list[T]], Results[R]], /
    ) -> ContextBatchDefinition[T, R, Results[R]]: ...
    @overload
    def __call__(
        self, function: Callable[[list[T]], Coroutine[Any, Any, None]], /
    ) -> BatchDefinition[T, None, Coroutine[Any, Any, None]]: ...
    @overload
    def __call__(
        self, function: Callable[[list[T]], Coroutine[Any, Any, Results[R]]], /
    ) -> BatchDefinition[T, R, Coroutine[Any, Any, Results[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[[list[T]], None], /
    ) -> BatchDefinition[T, None, None]: ...
    @overload
    def __call__(
        self, function: Callable[[list[T]], Results[R]], /
    ) -> BatchDefinition[T, R, Results[R]]: ...

    def __call__(self, function: Any, /) -> Any:
        return self._define(function, self._options)
