"""The ways to submit, written once for a definition and for a definition with options.

`P` are the handler's parameters without the context, so a type checker sees a wrong argument in
`f.submit(…)` and in `f.options(…).submit(…)` alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from holdfast.core.task import Json
from holdfast.definitions.builders import group
from holdfast.definitions.call import Call, submit_calls, submit_calls_async
from holdfast.definitions.composing import Composite, Link
from holdfast.definitions.handle import Handle
from holdfast.definitions.options import SubmitKeywords, in_our_words, read_options

if TYPE_CHECKING:
    from holdfast.definitions.definition import Definition
    from holdfast.definitions.home import Home

P = ParamSpec("P")
R = TypeVar("R")


class Submittable(ABC, Generic[P, R]):
    """Something that can be submitted with the parameters `P` and will result in an `R`."""

    @property
    @abstractmethod
    def home(self) -> Home: ...

    @abstractmethod
    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Check the arguments now, submit later: `app.submit_many([f.call(1), g.call(2)])`."""

    @abstractmethod
    def options(self, **options: Unpack[SubmitKeywords]) -> WithOptions[P, R]:
        """The same task, submitted differently; see `SubmitKeywords`."""

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submit from sync code. When it returns, the task is durable (with `connection`: when you
        commit).
        """
        return submit_calls(self.home, [self.call(*args, **kwargs)])[0]

    async def submit_async(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submit from async code. When it returns, the task is durable."""
        return (await submit_calls_async(self.home, [self.call(*args, **kwargs)]))[0]

    @abstractmethod
    def s(self, *args: Any, **kwargs: Any) -> Link[R]:
        """A link of a composition (`chain`, `group`, `chord`, `batch`); arguments may lack."""

    def map(self, items: Iterable[Any]) -> Composite[list[R]]:
        """A group of one task for each of these, which is its first argument. They may come from a
        generator: more than 1,000 are stored in slices, in bounded memory.
        """
        return group(self.s(item) for item in items)

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Another word for `submit`, for those who come from there."""
        return self.submit(*args, **kwargs)


class WithOptions(Submittable[P, R]):
    """A definition with one submit's options. Immutable: `options()` returns another."""

    __slots__ = ("_definition", "_keywords", "_options")

    def __init__(self, definition: Definition[P, R, Any], keywords: Mapping[str, Any]) -> None:
        self._definition = definition
        self._keywords = in_our_words(keywords)
        self._options = read_options(self._keywords)

    @property
    def home(self) -> Home:
        return self._definition.home

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        return self._definition.make_call(args, kwargs, self._options)

    def s(self, *args: Any, **kwargs: Any) -> Link[R]:
        return self._definition.link(args, kwargs, self._options)

    def call_json(self, arguments: Mapping[str, Json]) -> Call[R]:
        """Like `call`, with JSON values by name: what a command line or a REST body has."""
        return self._definition.make_json_call(arguments, self._options)

    def options(self, **options: Unpack[SubmitKeywords]) -> WithOptions[P, R]:
        return WithOptions(self._definition, {**self._keywords, **in_our_words(options)})
