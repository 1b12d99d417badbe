"""What a decorated function says about itself: its name, its parameters, what it returns.

Annotations are resolved one by one, so that a return type imported only for type checkers does not
stand in the way of the parameters. A name that is not defined yet (a model further down the module)
is looked up again at the first use.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from holdfast.codec import ArgumentCodec, ResultCodec
from holdfast.definitions.batch import item_of, result_of
from holdfast.definitions.batch_context import BatchContext
from holdfast.definitions.context import Context
from holdfast.definitions.hints import Unresolved, hint_of
from holdfast.errors import InvalidArguments, InvalidOption

Parameter = inspect.Parameter
T = TypeVar("T")

_ONE = ([Parameter.POSITIONAL_ONLY], [Parameter.POSITIONAL_OR_KEYWORD])
_CONTEXTS = (Context.__name__, BatchContext.__name__)


class Signature:
    """A function's own words, ready to build codecs from."""

    def __init__(self, function: Callable[..., Any], local_names: Mapping[str, Any]) -> None:
        self._function = function
        self._local_names = local_names
        parameters = list(inspect.signature(function).parameters.values())
        self.wants_context = bool(parameters) and self._is_context(parameters[0])
        self.parameters: Sequence[Parameter] = parameters[self.wants_context :]
        self.is_async = inspect.iscoroutinefunction(function)
        self._refuse_what_cannot_be_a_task()

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, without the context."""
        return tuple(p.name for p in self.parameters)

    def refuse_unless_a_list(self) -> None:
        """`InvalidOption` unless it takes one list, as the handler of a batch does."""
        if [p.kind for p in self.parameters] not in _ONE or self.parameters[0].default is not (
            Parameter.empty
        ):
            raise self._refusal("must have one parameter, a list, to take a batch", "batch")
        with suppress(Unresolved):
            item_of(self._hint(self.parameters[0].annotation))

    def argument_codec(
        self,
        task: str,
        secret_fields: Sequence[str] = (),
        later: Collection[str] = (),
        *,
        is_batch: bool = False,
    ) -> ArgumentCodec:
        """The codec of all parameters, but for those whose arguments come `later`; for a batch, of
        one item of its list.
        """
        parameters = [p for p in self.parameters if p.name not in later]
        hints = {p.name: self._hint(p.annotation) for p in parameters}
        if is_batch:
            hints = {name: item_of(hint) for name, hint in hints.items()}
        return _built(partial(ArgumentCodec, task, parameters, hints, secret_fields), task)

    def result_codec(self, task: str, *, is_batch: bool = False) -> ResultCodec:
        annotation = getattr(self._function, "__annotations__", {}).get("return", Parameter.empty)
        hint = self._hint(annotation)
        return _built(partial(ResultCodec, task, result_of(hint) if is_batch else hint), task)

    def _hint(self, annotation: Any) -> Any:
        return hint_of(self._function, annotation, self._local_names)

    def _is_context(self, parameter: Parameter) -> bool:
        annotation = parameter.annotation
        try:
            hint = self._hint(annotation)
        except Unresolved:
            # Imported for type checkers only: its name is all there is to go by.
            return str(annotation).rpartition(".")[2] in _CONTEXTS
        return isinstance(hint, type) and issubclass(hint, Context)

    def _refuse_what_cannot_be_a_task(self) -> None:
        function = self._function
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise self._refusal("is a generator; a task must return its result, not yield it")
        if self.names[:1] in {("self",), ("cls",)}:
            raise self._refusal(
                "is a method; a worker has no object to call it on. Make it a function or a "
                "@staticmethod (with @staticmethod above the task decorator) and pass an id"
            )
        if any(self._is_context(p) for p in self.parameters):
            raise self._refusal("takes a Context that is not its first parameter; move it there")

    def _refusal(self, problem: str, option: str = "task") -> InvalidOption:
        called = getattr(self._function, "__qualname__", repr(self._function))
        return InvalidOption(option, f"{called} {problem}.")


def task_name(function: Callable[..., Any]) -> str:
    """`module.qualname`; a script's functions are named after its file, as its worker sees them."""
    module = function.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec, path = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec else Path(path).stem if path else module
    return f"{module}.{function.__qualname__}"


def _built(build: Callable[[], T], task: str) -> T:
    """Build a codec, in the errors of this house."""
    try:
        return build()
    except PydanticSchemaGenerationError as error:
        raise InvalidArguments(
            f"task {task!r} has an annotation without a JSON form: {error.message.splitlines()[0]} "
            "Annotate with plain types, dataclasses or Pydantic models, and pass ids or URLs "
            "instead of connections, files and the like."
        ) from None
    except PydanticUserError as error:
        if error.code in {"class-not-fully-defined", "undefined-annotation"}:
            raise Unresolved(error.message) from None
        raise InvalidArguments(
            f"task {task!r} has an annotation that Pydantic cannot read: {error.message}"
        ) from None
    except NameError as error:
        raise Unresolved(str(error)) from None
